"""Measure speed and size of bulk indexing: `python -m evaluation.benchmarks.bulk`.

Into evaluation/reports/bulk.{json,md}.
"""
