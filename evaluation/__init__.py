"""Benchmark programs and cases; reports/ holds what they found."""
