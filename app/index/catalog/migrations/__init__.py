"""Alembic's scripts, run by `app.index.catalog.database`; there is no alembic.ini."""
