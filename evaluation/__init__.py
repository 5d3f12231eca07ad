"""Programs that measure this project: benchmarks, studies, campaigns; reports/ keeps their pages."""
