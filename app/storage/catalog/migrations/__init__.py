"""Alembic's scripts, run by `app.storage.catalog.database`; there is no alembic.ini."""
