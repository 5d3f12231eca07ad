"""Uploads, replacements, deletions and searches at once, held to a model of what each search may and must return."""
