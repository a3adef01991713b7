"""Topics: the queue of the overlay, failures per cluster and day, when topics were seen, and longer ids."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the tables and columns of the topic overlay."""
    with op.batch_alter_table("days") as days:
        days.add_column(sa.Column("topic_due", sa.Boolean(), server_default=sa.false(), nullable=False))
        days.add_column(sa.Column("topic_fingerprint", sa.String(length=64), nullable=True))
        days.add_column(sa.Column("topic_rows", sa.Integer(), server_default="0", nullable=False))
    _resize(sa.String(length=255), sa.String(length=512))
    op.create_table(
        "topic_failures",
        sa.Column("tracking_date", sa.Date(), nullable=False),
        sa.Column("cluster_id", sa.String(length=255), nullable=False),
        sa.Column("failures", sa.Integer(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("tracking_date", "cluster_id", name=op.f("pk_topic_failures")),
    )
    op.create_table(
        "topic_sightings",
        sa.Column("cluster_id", sa.String(length=255), nullable=False),
        sa.Column("first_day", sa.Date(), nullable=False),
        sa.Column("last_day", sa.Date(), nullable=False),
        sa.PrimaryKeyConstraint("cluster_id", name=op.f("pk_topic_sightings")),
    )


def downgrade() -> None:
    """Remove them; this fails if an id is too long for the former column."""
    op.drop_table("topic_sightings")
    op.drop_table("topic_failures")
    _resize(sa.String(length=512), sa.String(length=255))
    with op.batch_alter_table("days") as days:
        for name in ("topic_rows", "topic_fingerprint", "topic_due"):
            days.drop_column(name)


def _resize(before: sa.String, after: sa.String) -> None:
    for table, column in (("resources", "resource_id"), ("tags", "entity_id")):
        with op.batch_alter_table(table) as altered:
            altered.alter_column(column, existing_type=before, type_=after, existing_nullable=False)
