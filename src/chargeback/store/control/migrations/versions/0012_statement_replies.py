"""What recipients say of their statements."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "statement_replies",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("number", sa.String(length=512), nullable=False),
        sa.Column("period", sa.String(length=7), nullable=False),
        sa.Column("grouping", sa.String(length=80), nullable=False),
        sa.Column("value", sa.String(length=512), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("verdict", sa.String(length=16), nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("data_through", sa.Date(), nullable=True),
        sa.Column("created_by", sa.String(length=255), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_statement_replies")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_statement_replies_period", "statement_replies", ["period", "grouping"])


def downgrade() -> None:
    """Remove the table."""
    op.drop_index("ix_statement_replies_period", table_name="statement_replies")
    op.drop_table("statement_replies")
