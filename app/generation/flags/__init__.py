"""Passages that give orders to a model."""
