"""Bring a catalog to this release's schema without opening anything else."""

from __future__ import annotations

from dataclasses import dataclass

from app.index.catalog.opening import open_database
from app.index.catalog.schema import SCHEMA_VERSION
from app.index.files.steps import Steps
from app.index.maintenance.start_checks import catalog_path, refuse_foreign_catalog
from app.index.options import IndexOptions
from app.index.queue.opening import open_shared_jobs


@dataclass(frozen=True, slots=True)
class Migration:
    """What a migration found and made."""

    name: str
    """Of the database, without a password."""
    before: str | None
    """The schema that was there; None for a new catalog."""
    after: str


def migrate_catalog(options: IndexOptions) -> Migration:
    """Create or upgrade the catalog that the settings name, in one transaction.

    The caller holds the directory's lock where the catalog is a file. Servers that share a catalog
    may run meanwhile; the tables of their jobs are created too.

    Raises:
        InvalidInput: DATABASE_URL is wrong, or its database does not answer.
        Locked: Another server writes to the database.
        IndexDamaged: The catalog does not belong to its data directory.
        StorageError: A newer release wrote it.
    """
    refuse_foreign_catalog(options.data_dir, options.database_url)
    options.data_dir.mkdir(parents=True, exist_ok=True)
    database = open_database(
        catalog_path(options.data_dir), options.database_url, Steps(), shared=options.shared
    )
    try:
        if options.shared:
            with open_shared_jobs(options.database_url):
                pass
        return Migration(database.name, database.schema_before, SCHEMA_VERSION)
    finally:
        database.close()
