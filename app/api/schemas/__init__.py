"""Define the HTTP contract's pydantic models: requests and responses."""
