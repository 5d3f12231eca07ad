"""Run migrations for Alembic; `app.index.catalog.database.upgrade` connects."""

from __future__ import annotations

from alembic import context

from app.index.catalog.schema import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    transactional_ddl=True,
)
context.run_migrations()
