"""Alembic's scripts, run by `app.index.catalog.versions`; there is no alembic.ini."""
