"""Versions of the policies that ecosystems ship."""

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make their table."""
    op.create_table(
        "shipped_policies",
        sa.Column("effective_from", sa.Date(), nullable=False),
        sa.Column("policies", sa.Text(), nullable=False),
        sa.Column("software", sa.String(length=64), nullable=False),
        sa.Column("recorded_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("effective_from", name=op.f("pk_shipped_policies")),
    )


def downgrade() -> None:
    """Remove it."""
    op.drop_table("shipped_policies")
