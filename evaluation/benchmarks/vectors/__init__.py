"""A million vectors and chunks: the faiss store, the dense leg, filters, words, kills."""
