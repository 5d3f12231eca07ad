"""What only several machines need: PostgreSQL, Qdrant, an object store. The extra `shared`."""
