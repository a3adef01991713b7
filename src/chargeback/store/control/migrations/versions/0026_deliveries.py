"""What the sinks of notifications are told."""

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make their tables."""
    op.create_table(
        "sinks",
        sa.Column("name", sa.String(length=32), nullable=False),
        sa.Column("cursor", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_sinks")),
    )
    op.create_table(
        "deliveries",
        sa.Column("sink", sa.String(length=32), nullable=False),
        sa.Column("event_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("subject", sa.String(length=255), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("next_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("last_error", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("sink", "event_id", name=op.f("pk_deliveries")),
    )
    op.create_index("ix_deliveries_state", "deliveries", ["state"])


def downgrade() -> None:
    """Remove them."""
    op.drop_table("deliveries")
    op.drop_table("sinks")
