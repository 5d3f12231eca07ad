"""The first schema.

A new store gets every table of this release here and skips the later migrations.
"""

from __future__ import annotations

from alembic import op

from app.storage.catalog import schema  # noqa: F401  # declare the tables
from app.storage.catalog.schema import metadata

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create every table as `schema.py` declares it."""
    metadata.create_all(op.get_bind())


def downgrade() -> None:
    """Refuse: there is nothing before the first schema."""
    raise NotImplementedError("0001 is the first schema")
