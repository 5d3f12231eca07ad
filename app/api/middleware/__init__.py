"""Pure ASGI middleware, outermost first as API requirements F1 list it."""
