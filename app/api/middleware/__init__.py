"""Provide pure ASGI middleware, one concern a module.

`app.api.app` puts them in order, outermost first.
"""
