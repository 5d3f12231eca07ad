"""Chroma as the store of vectors."""
