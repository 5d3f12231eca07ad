"""Store the truth in SQLite: the catalog that every projection is made from.

It knows none of the projections.
"""
