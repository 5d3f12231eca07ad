"""The query use case: one way to answer."""
