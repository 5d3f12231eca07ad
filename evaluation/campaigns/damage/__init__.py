"""Damaged vector stores: what a server does with each kind, and with healthy ones."""
