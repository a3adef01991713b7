"""Closing months: what was done to them, adjustments, and the provider's invoices."""

import sqlalchemy as sa
from alembic import op
from alembic.util.exc import CommandError

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the tables."""
    op.create_table(
        "closings",
        sa.Column("n", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("period", sa.String(length=7), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("receipt", sa.Text(), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("names_digest", sa.String(length=64), nullable=True),
        sa.Column("idempotency_key", sa.String(length=255), nullable=True),
        sa.PrimaryKeyConstraint("n", name=op.f("pk_closings")),
        sa.UniqueConstraint("idempotency_key", name=op.f("uq_closings_idempotency_key")),
    )
    op.create_table(
        "closing_requests",
        sa.Column("period", sa.String(length=7), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("requested_by", sa.String(length=255), nullable=False),
        sa.Column("requested_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("period", name=op.f("pk_closing_requests")),
    )
    op.create_table(
        "adjustments",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("period", sa.String(length=7), nullable=False),
        sa.Column("until", sa.String(length=7), nullable=True),
        sa.Column("grouping", sa.String(length=80), nullable=False),
        sa.Column("value", sa.String(length=512), nullable=False),
        sa.Column("from_value", sa.String(length=512), nullable=True),
        sa.Column("amount", sa.String(length=64), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("applies_to", sa.String(length=7), nullable=True),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("reference", sa.String(length=255), nullable=True),
        sa.Column("reverses", sa.Integer(), nullable=True),
        sa.Column("idempotency_key", sa.String(length=255), nullable=True),
        sa.Column("created_by", sa.String(length=255), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("removed_by", sa.String(length=255), nullable=True),
        sa.Column("removed_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_adjustments")),
        sa.UniqueConstraint("idempotency_key", name=op.f("uq_adjustments_idempotency_key")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "invoices",
        sa.Column("period", sa.String(length=7), nullable=False),
        sa.Column("invoice_id", sa.String(length=255), nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.Column("who", sa.String(length=255), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("period", "invoice_id", name=op.f("pk_invoices")),
    )


def downgrade() -> None:
    """Remove the tables while no month was closed; else what was booked would be lost.

    Raises:
        CommandError: months were closed.
    """
    if op.get_bind().execute(sa.text("SELECT count(*) FROM closings")).scalar():
        raise CommandError("months were closed: restore a backup of the earlier version")
    for name in ("invoices", "adjustments", "closing_requests", "closings"):
        op.drop_table(name)
