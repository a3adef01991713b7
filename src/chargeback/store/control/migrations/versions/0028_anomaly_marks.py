"""What people know of days that stand out."""

import sqlalchemy as sa
from alembic import op

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make their table; what has stood out may have done so within a scope alone."""
    op.create_table(
        "anomaly_marks",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("identity_id", sa.String(length=255), nullable=False),
        sa.Column("product_category", sa.String(length=255), nullable=True),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("start_date", sa.Date(), nullable=False),
        sa.Column("end_date", sa.Date(), nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("created_by", sa.String(length=255), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_anomaly_marks")),
    )
    with op.batch_alter_table("anomalies") as anomalies:
        anomalies.add_column(sa.Column("scope", sa.String(length=16), nullable=False, server_default=""))
    with op.batch_alter_table("tenant") as tenant:
        tenant.add_column(sa.Column("contracts_revision", sa.Integer(), nullable=False, server_default="0"))


def downgrade() -> None:
    """Remove it."""
    with op.batch_alter_table("anomalies") as anomalies:
        anomalies.drop_column("scope")
    with op.batch_alter_table("tenant") as tenant:
        tenant.drop_column("contracts_revision")
    op.drop_table("anomaly_marks")
