"""Benchmark speed, size and memory: `python -m evaluation.benchmarks.NAME`."""
