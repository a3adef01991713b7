"""Incomplete evidence: the parts that were missing for each day, and the rules by which its evidence was gathered."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

_days = sa.table(
    "days",
    sa.column("metrics_unavailable", sa.Boolean),
    sa.column("incomplete", sa.JSON),
    sa.column("tracking_date", sa.Date),
)
_WITHOUT_METRICS = {"metrics": "the metrics source did not answer"}


def upgrade() -> None:
    """Add the columns; missing metrics become one of several reasons."""
    with op.batch_alter_table("days") as days:
        days.add_column(sa.Column("incomplete", sa.JSON(), server_default="{}", nullable=False))
        days.add_column(sa.Column("evidence_version", sa.Integer(), server_default="0", nullable=False))
    op.execute(_days.update().where(_days.c.metrics_unavailable).values(incomplete=_WITHOUT_METRICS))
    with op.batch_alter_table("days") as days:
        days.drop_column("metrics_unavailable")


def downgrade() -> None:
    """Remove the columns; of the reasons, only missing metrics are kept."""
    with op.batch_alter_table("days") as days:
        days.add_column(sa.Column("metrics_unavailable", sa.Boolean(), server_default=sa.false(), nullable=False))
    connection = op.get_bind()
    stored = connection.execute(sa.select(_days.c.tracking_date, _days.c.incomplete)).all()
    without = [day for day, incomplete in stored if "metrics" in incomplete]
    connection.execute(_days.update().where(_days.c.tracking_date.in_(without)).values(metrics_unavailable=True))
    with op.batch_alter_table("days") as days:
        days.drop_column("evidence_version")
        days.drop_column("incomplete")
