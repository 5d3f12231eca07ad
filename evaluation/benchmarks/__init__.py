"""Benchmarks: speed, size and memory; `python -m evaluation.benchmarks.NAME` writes a report."""
