"""The days of shadows: policies that are calculated beside those in force."""

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make their table."""
    op.create_table(
        "shadow_days",
        sa.Column("name", sa.String(length=32), nullable=False),
        sa.Column("tracking_date", sa.Date(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("policies_hash", sa.String(length=64), nullable=False),
        sa.Column("billed", sa.Text(), nullable=False),
        sa.Column("moved", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("name", "tracking_date", name=op.f("pk_shadow_days")),
    )


def downgrade() -> None:
    """Remove it."""
    op.drop_table("shadow_days")
