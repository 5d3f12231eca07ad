"""Measure this project: benchmarks, studies, campaigns; reports/ keeps pages."""
