"""${message}."""

from __future__ import annotations

from alembic import op

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Bring a store of the version before to this one."""
    ${upgrades if upgrades else "pass"}


def downgrade() -> None:
    """Refuse: going back is restoring the backup made before the upgrade."""
    raise NotImplementedError("restore the backup that was made before the upgrade")
