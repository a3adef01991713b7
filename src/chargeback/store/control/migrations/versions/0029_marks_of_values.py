"""What people know of days of a value of a cost category."""

import sqlalchemy as sa
from alembic import op

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Name the cost category, which is empty for an identity."""
    with op.batch_alter_table("anomaly_marks") as marks:
        marks.add_column(sa.Column("category", sa.String(length=128), nullable=False, server_default=""))
        marks.alter_column("identity_id", new_column_name="who", existing_type=sa.String(length=255))


def downgrade() -> None:
    """Forget those of values."""
    op.execute("DELETE FROM anomaly_marks WHERE category <> ''")
    with op.batch_alter_table("anomaly_marks") as marks:
        marks.drop_column("category")
        marks.alter_column("who", new_column_name="identity_id", existing_type=sa.String(length=255))
