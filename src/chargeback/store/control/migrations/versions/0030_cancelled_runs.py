"""Runs that can be cancelled, with their log, the days of their errors, and how far they are."""

import sqlalchemy as sa
from alembic import op

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add their columns, and make the table of their logs."""
    with op.batch_alter_table("runs") as runs:
        runs.add_column(sa.Column("cancelled_by", sa.String(length=255), nullable=True))
        runs.add_column(sa.Column("errors_from", sa.Date(), nullable=True))
        runs.add_column(sa.Column("errors_to", sa.Date(), nullable=True))
    with op.batch_alter_table("tenant") as tenant:
        tenant.add_column(sa.Column("stage_done", sa.Integer(), nullable=False, server_default="0"))
        tenant.add_column(sa.Column("stage_total", sa.Integer(), nullable=False, server_default="0"))
    op.create_table(
        "run_logs",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("level", sa.String(length=16), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_run_logs")),
    )
    op.create_index("ix_run_logs_run_id", "run_logs", ["run_id"])


def downgrade() -> None:
    """Remove them."""
    op.drop_table("run_logs")
    with op.batch_alter_table("tenant") as tenant:
        tenant.drop_column("stage_done")
        tenant.drop_column("stage_total")
    with op.batch_alter_table("runs") as runs:
        for name in ("cancelled_by", "errors_from", "errors_to"):
            runs.drop_column(name)
