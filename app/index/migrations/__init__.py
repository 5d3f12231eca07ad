"""Alembic's scripts, run by `app.index.database`; there is no alembic.ini."""
