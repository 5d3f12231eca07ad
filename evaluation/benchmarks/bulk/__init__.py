"""How fast and how large bulk indexing is: `python -m evaluation.benchmarks.bulk`, into evaluation/reports/bulk.{json,md}."""
