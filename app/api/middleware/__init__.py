"""Pure ASGI middleware, one concern per module. `app.api.app` puts them in order, outermost first."""
