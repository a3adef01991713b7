"""Saved views, and a revision of the inventory."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table and the column."""
    op.create_table(
        "views",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("page", sa.String(length=64), nullable=False),
        sa.Column("query", sa.Text(), nullable=False),
        sa.Column("created_by", sa.String(length=255), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_views")),
        sa.UniqueConstraint("name", name=op.f("uq_views_name")),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("tenant") as tenant:
        tenant.add_column(sa.Column("inventory_revision", sa.Integer(), server_default="0", nullable=False))


def downgrade() -> None:
    """Remove the table and the column."""
    with op.batch_alter_table("tenant") as tenant:
        tenant.drop_column("inventory_revision")
    op.drop_table("views")
