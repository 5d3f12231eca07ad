"""Bytes to parsed documents to chunks; knows only the ports."""
