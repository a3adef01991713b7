"""Budgets, and how far their thresholds are."""

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make their tables."""
    op.create_table(
        "budgets",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("version", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("document", sa.Text(), nullable=True),
        sa.Column("who", sa.String(length=255), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", "version", name=op.f("pk_budgets")),
    )
    op.create_table(
        "budget_states",
        sa.Column("budget_id", sa.String(length=64), nullable=False),
        sa.Column("period_id", sa.String(length=7), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("budget_id", "period_id", name=op.f("pk_budget_states")),
    )


def downgrade() -> None:
    """Remove them."""
    op.drop_table("budget_states")
    op.drop_table("budgets")
