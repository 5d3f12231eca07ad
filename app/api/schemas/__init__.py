"""Pydantic models of the HTTP contract (API.md): what may be sent, and what OpenAPI says will come back."""
