"""What a sentence says: words, clauses, figures, rows of tables, windows of a passage."""
