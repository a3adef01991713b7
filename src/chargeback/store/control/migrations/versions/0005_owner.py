"""The owner of the storage: the tenant_id and the ecosystem of all its data."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns. They are filled on first use, from the stored data if possible."""
    with op.batch_alter_table("tenant") as tenant:
        tenant.add_column(sa.Column("tenant_id", sa.String(length=255), nullable=True))
        tenant.add_column(sa.Column("ecosystem", sa.String(length=255), nullable=True))


def downgrade() -> None:
    """Remove the columns."""
    with op.batch_alter_table("tenant") as tenant:
        tenant.drop_column("ecosystem")
        tenant.drop_column("tenant_id")
