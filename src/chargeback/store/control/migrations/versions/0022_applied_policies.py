"""Versions of a tenant's own policies that were applied from a plan."""

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make their table."""
    op.create_table(
        "applied_policies",
        sa.Column("effective_from", sa.Date(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("policies", sa.Text(), nullable=False),
        sa.Column("plan", sa.String(length=64), nullable=False),
        sa.Column("applied_by", sa.String(length=255), nullable=False),
        sa.Column("applied_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("effective_from", name=op.f("pk_applied_policies")),
    )
    with op.batch_alter_table("tenant") as tenant:
        tenant.add_column(sa.Column("policies_revision", sa.Integer(), nullable=False, server_default="0"))


def downgrade() -> None:
    """Remove it."""
    with op.batch_alter_table("tenant") as tenant:
        tenant.drop_column("policies_revision")
    op.drop_table("applied_policies")
