"""Check concurrent uploads, replacements, deletions and searches with a model.

The model says what each search may and must return.
"""
