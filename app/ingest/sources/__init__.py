"""Streams of raw documents: files, folders, dumps."""
