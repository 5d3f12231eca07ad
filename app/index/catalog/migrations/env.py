"""Run migrations for Alembic; `app.index.catalog.versions.upgrade` connects."""

from __future__ import annotations

from alembic import context

from app.index.catalog import schema, work_schema  # noqa: F401  # declare the tables
from app.index.catalog.columns import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    transactional_ddl=True,
)
context.run_migrations()
