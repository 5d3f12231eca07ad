"""Alembic's scripts, run by `app.storage.catalog.engine`; there is no alembic.ini."""
