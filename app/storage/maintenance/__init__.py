"""Backup, bundles, checks, purges and re-embedding: work on the store as a whole."""
