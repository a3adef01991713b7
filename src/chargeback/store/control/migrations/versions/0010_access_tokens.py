"""Tokens of machines."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "access_tokens",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("rights", sa.JSON(), nullable=False),
        sa.Column("scope", sa.JSON(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("created_by", sa.String(length=255), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("revoked_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("last_used_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_access_tokens")),
        sa.UniqueConstraint("digest", name=op.f("uq_access_tokens_digest")),
        sqlite_autoincrement=True,
    )
    in_use = sa.text("revoked_at IS NULL")
    op.create_index(
        "ix_access_tokens_in_use",
        "access_tokens",
        ["name"],
        unique=True,
        sqlite_where=in_use,
        postgresql_where=in_use,
    )


def downgrade() -> None:
    """Remove the table."""
    op.drop_table("access_tokens")
