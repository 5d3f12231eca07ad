"""faiss as the store of vectors: short codes in lists, in the server's process."""
