"""The outbox of events, and the signatures of receipts."""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None

_SIGNED = ("public_key", "signature")


def upgrade() -> None:
    """Add them; receipts of earlier closings have no signature."""
    with op.batch_alter_table("closings") as closings:
        for name in _SIGNED:
            closings.add_column(sa.Column(name, sa.String(length=128), nullable=True))
    op.create_table(
        "events",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("kind", sa.String(length=64), nullable=False),
        sa.Column("subject", sa.String(length=255), nullable=False),
        sa.Column("body", sa.JSON(), nullable=False),
        sa.Column("dedupe_key", sa.String(length=255), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_events")),
        sa.UniqueConstraint("dedupe_key", name=op.f("uq_events_dedupe_key")),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("events") as events:
        events.create_index(op.f("ix_events_at"), ["at"])


def downgrade() -> None:
    """Remove them: what the receipts say stays."""
    op.drop_table("events")
    with op.batch_alter_table("closings") as closings:
        for name in reversed(_SIGNED):
            closings.drop_column(name)
