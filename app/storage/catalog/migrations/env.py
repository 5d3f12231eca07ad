"""Run migrations for Alembic; `app.storage.catalog.database.upgrade` connects."""

from __future__ import annotations

from alembic import context

from app.storage.catalog import schema  # noqa: F401  # declare the tables
from app.storage.catalog.schema import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    transactional_ddl=True,
)
context.run_migrations()
