"""Reach a search engine that serves vectors and words to several servers."""
