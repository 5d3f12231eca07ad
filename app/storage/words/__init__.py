"""The lexical projection: BM25 by tantivy."""
