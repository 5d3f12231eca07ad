"""Tests of app.retrieval."""
