"""What has stood out, and what was told of it."""

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make their table."""
    op.create_table(
        "anomalies",
        sa.Column("id", sa.String(length=16), nullable=False),
        sa.Column("first_date", sa.Date(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("impact", sa.Float(), nullable=False),
        sa.Column("told", sa.Float(), nullable=True),
        sa.Column("told_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_anomalies")),
    )
    with op.batch_alter_table("tenant") as tenant:
        tenant.add_column(sa.Column("anomalies_revision", sa.Integer(), nullable=False, server_default="0"))


def downgrade() -> None:
    """Remove it."""
    with op.batch_alter_table("tenant") as tenant:
        tenant.drop_column("anomalies_revision")
    op.drop_table("anomalies")
