"""How often the fact tables were changed: who knows it need not look at their logs."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column."""
    with op.batch_alter_table("tenant") as tenant:
        tenant.add_column(sa.Column("facts_revision", sa.Integer(), server_default="0", nullable=False))


def downgrade() -> None:
    """Remove the column."""
    with op.batch_alter_table("tenant") as tenant:
        tenant.drop_column("facts_revision")
