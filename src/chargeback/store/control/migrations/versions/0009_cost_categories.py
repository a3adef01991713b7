"""Cost categories, with every version that each has had."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table and the column."""
    op.create_table(
        "cost_categories",
        sa.Column("key", sa.String(length=64), nullable=False),
        sa.Column("version", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("document", sa.Text(), nullable=True),
        sa.Column("who", sa.String(length=255), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("key", "version", name=op.f("pk_cost_categories")),
    )
    with op.batch_alter_table("tenant") as tenant:
        tenant.add_column(sa.Column("categories_revision", sa.Integer(), server_default="0", nullable=False))


def downgrade() -> None:
    """Remove the table and the column."""
    with op.batch_alter_table("tenant") as tenant:
        tenant.drop_column("categories_revision")
    op.drop_table("cost_categories")
