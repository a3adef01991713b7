"""One row per dataset and day, with its state, instead of columns for each dataset in the row of the day."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

_CHARGEBACKS = """
    INSERT INTO dataset_days (dataset, tracking_date, state, is_measured, fingerprint, rows, revision)
    SELECT 'chargebacks', tracking_date,
           CASE WHEN chargeback_calculated THEN 'current'
                WHEN billing_gathered OR calculated_fingerprint IS NOT NULL THEN 'due' ELSE 'none' END,
           calculated_fingerprint IS NOT NULL, calculated_fingerprint, chargeback_rows, revision
    FROM days
"""
_TOPICS = """
    INSERT INTO dataset_days (dataset, tracking_date, state, is_measured, fingerprint, rows, revision)
    SELECT 'topics', tracking_date,
           CASE WHEN topic_due AND topic_attribution_calculated THEN 'review' WHEN topic_due THEN 'due'
                WHEN topic_attribution_calculated THEN 'current' ELSE 'none' END,
           topic_overlay_gathered, topic_fingerprint, topic_rows, topic_revision
    FROM days
"""
_OF_DAY = "FROM dataset_days AS its WHERE its.dataset = '{dataset}' AND its.tracking_date = days.tracking_date"
_BACK = {
    "chargebacks": {
        "chargeback_calculated": "its.state = 'current'",
        "calculated_fingerprint": "its.fingerprint",
        "chargeback_rows": "its.rows",
        "revision": "its.revision",
    },
    "topics": {
        "topic_overlay_gathered": "its.is_measured",
        "topic_attribution_calculated": "its.state IN ('current', 'review')",
        "topic_due": "its.state IN ('due', 'review')",
        "topic_fingerprint": "its.fingerprint",
        "topic_rows": "its.rows",
        "topic_revision": "its.revision",
    },
}


def _columns() -> list[sa.Column[Any]]:
    flags = ("chargeback_calculated", "topic_overlay_gathered", "topic_attribution_calculated", "topic_due")
    counts = ("topic_rows", "chargeback_rows", "revision", "topic_revision")
    return [
        *(sa.Column(name, sa.Boolean(), server_default=sa.text("false"), nullable=False) for name in flags),
        *(sa.Column(name, sa.Integer(), server_default="0", nullable=False) for name in counts),
        sa.Column("topic_fingerprint", sa.String(length=64), nullable=True),
        sa.Column("calculated_fingerprint", sa.String(length=64), nullable=True),
    ]


def upgrade() -> None:
    """Move the columns of both datasets into rows."""
    op.create_table(
        "dataset_days",
        sa.Column("tracking_date", sa.Date(), nullable=False),
        sa.Column("dataset", sa.String(length=32), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("is_measured", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("fingerprint", sa.String(length=64), nullable=True),
        sa.Column("rows", sa.Integer(), server_default="0", nullable=False),
        sa.Column("revision", sa.Integer(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("tracking_date", "dataset", name=op.f("pk_dataset_days")),
        sqlite_with_rowid=False,
    )
    op.execute(_CHARGEBACKS)
    op.execute(_TOPICS)
    with op.batch_alter_table("days") as days:
        for column in _columns():
            days.drop_column(column.name)


def downgrade() -> None:
    """Move the rows back into columns."""
    with op.batch_alter_table("days") as days:
        for column in _columns():
            days.add_column(column)
    for dataset, columns in _BACK.items():
        of_day = _OF_DAY.format(dataset=dataset)
        for name, value in columns.items():
            op.execute(f"UPDATE days SET {name} = (SELECT {value} {of_day}) WHERE EXISTS (SELECT 1 {of_day})")
    op.drop_table("dataset_days")
