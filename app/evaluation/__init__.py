"""The harness as a library: collections, metrics, statistics, ablation, reports."""
