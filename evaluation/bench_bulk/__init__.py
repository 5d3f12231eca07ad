"""How fast and how large bulk indexing is: `python -m evaluation.bench_bulk`, into evaluation/reports/bulk.{json,md}."""
