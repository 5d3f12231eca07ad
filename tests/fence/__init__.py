"""The outside of the product, held by golden files: `make fence`; `python -m tests.fence` writes them."""
