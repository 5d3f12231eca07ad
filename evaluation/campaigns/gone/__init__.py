"""Deleted means gone: a planted document is looked for in every file, before and after it is purged."""
