"""Revisions of days, the policies that were used, and the audit log."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

_CALCULATED = "chargeback_calculated OR calculated_fingerprint IS NOT NULL"
_ATTRIBUTED = "topic_attribution_calculated OR topic_rows > 0"
_FIRST_REVISIONS = """
    INSERT INTO revisions (dataset, tracking_date, revision, calculated_at, cause, billing_fingerprint, rows)
    SELECT '{dataset}', tracking_date, 1, coalesce(gathered_at, CURRENT_TIMESTAMP), 'first', {fingerprint}, {rows}
    FROM days WHERE {condition}
"""


def upgrade() -> None:
    """Add the tables; what is stored of a day becomes its first revision, whose files the next run records."""
    op.create_table(
        "revisions",
        sa.Column("dataset", sa.String(length=32), nullable=False),
        sa.Column("tracking_date", sa.Date(), nullable=False),
        sa.Column("revision", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("calculated_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("run_id", sa.Integer(), nullable=True),
        sa.Column("cause", sa.String(length=32), nullable=False),
        sa.Column("billing_fingerprint", sa.String(length=64), nullable=True),
        sa.Column("policies_hash", sa.String(length=64), nullable=True),
        sa.Column("rows", sa.BigInteger(), nullable=False),
        sa.Column("total", sa.String(length=64), nullable=True),
        sa.Column("moved", sa.String(length=64), nullable=True),
        sa.Column("files", sa.JSON(), nullable=True),
        sa.PrimaryKeyConstraint("dataset", "tracking_date", "revision", name=op.f("pk_revisions")),
    )
    op.create_table(
        "policies",
        sa.Column("hash", sa.String(length=64), nullable=False),
        sa.Column("product_type", sa.String(length=255), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("first_used_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("hash", "product_type", name=op.f("pk_policies")),
    )
    op.create_table(
        "audit",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("who", sa.String(length=255), nullable=False),
        sa.Column("what", sa.String(length=64), nullable=False),
        sa.Column("target", sa.Text(), nullable=False),
        sa.Column("before", sa.JSON(), nullable=True),
        sa.Column("after", sa.JSON(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_audit_at", "audit", ["at"])
    with op.batch_alter_table("days") as days:
        days.add_column(sa.Column("revision", sa.Integer(), server_default="0", nullable=False))
        days.add_column(sa.Column("topic_revision", sa.Integer(), server_default="0", nullable=False))
    op.execute(
        _FIRST_REVISIONS.format(
            dataset="chargebacks",
            fingerprint="calculated_fingerprint",
            rows="chargeback_rows",
            condition=_CALCULATED,
        )
    )
    op.execute(
        _FIRST_REVISIONS.format(
            dataset="topics",
            fingerprint="topic_fingerprint",
            rows="topic_rows",
            condition=_ATTRIBUTED,
        )
    )
    op.execute(f"UPDATE days SET revision = 1 WHERE {_CALCULATED}")
    op.execute(f"UPDATE days SET topic_revision = 1 WHERE {_ATTRIBUTED}")


def downgrade() -> None:
    """Forget them; the fact tables keep their history."""
    with op.batch_alter_table("days") as days:
        days.drop_column("topic_revision")
        days.drop_column("revision")
    op.drop_index("ix_audit_at", table_name="audit")
    op.drop_table("audit")
    op.drop_table("policies")
    op.drop_table("revisions")
