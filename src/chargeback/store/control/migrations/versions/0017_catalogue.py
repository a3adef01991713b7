"""The catalogue of files, and what was known of tags. The tables of an earlier version are read into the catalogue when
the storage is next opened to be written."""

import sqlalchemy as sa
from alembic import op
from alembic.util.exc import CommandError

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table of files, and what the tenant's row says of it."""
    op.create_table(
        "files",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("table_name", sa.String(length=32), nullable=False),
        sa.Column("tracking_date", sa.Date(), nullable=True),
        sa.Column("path", sa.String(length=512), nullable=False),
        sa.Column("rows", sa.BigInteger(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("schema_version", sa.Integer(), server_default="0", nullable=False),
        sa.Column("since", sa.DateTime(timezone=True), nullable=False),
        sa.Column("until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("gone_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_files")),
    )
    op.create_index("ix_files_tracking_date", "files", ["tracking_date", "table_name"])
    present = sa.text("until IS NULL")
    op.create_index(
        "ix_files_present",
        "files",
        ["table_name", "tracking_date"],
        sqlite_where=present,
        postgresql_where=present,
    )
    with op.batch_alter_table("tenant") as tenant:
        tenant.add_column(sa.Column("facts_changed_at", sa.DateTime(timezone=True), nullable=True))
        tenant.add_column(sa.Column("has_catalogue", sa.Boolean(), server_default=sa.text("false"), nullable=False))
        tenant.add_column(sa.Column("published_revision", sa.Integer(), server_default="0", nullable=False))
    op.create_table(
        "past_tags",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("entity_type", sa.String(length=16), nullable=False),
        sa.Column("entity_id", sa.String(length=512), nullable=False),
        sa.Column("tag_key", sa.String(length=64), nullable=False),
        sa.Column("tag_value", sa.String(length=255), nullable=False),
        sa.Column("valid_from", sa.Date(), nullable=True),
        sa.Column("valid_to", sa.Date(), nullable=True),
        sa.Column("known_from", sa.DateTime(timezone=True), nullable=False),
        sa.Column("known_until", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_past_tags")),
    )
    op.create_index("ix_past_tags_known_until", "past_tags", ["known_until"])
    op.add_column("tags", sa.Column("known_from", sa.DateTime(timezone=True), nullable=True))
    op.execute("UPDATE tags SET known_from = created_at")
    with op.batch_alter_table("tags") as tags:
        tags.alter_column("known_from", nullable=False)


def downgrade() -> None:
    """Remove the catalogue while it is empty; else what the tables contain would be lost.

    Raises:
        CommandError: it is not empty.
    """
    if op.get_bind().execute(sa.text("SELECT count(*) FROM files")).scalar():
        raise CommandError("the catalogue says what the tables contain: restore a backup of the earlier version")
    with op.batch_alter_table("tenant") as tenant:
        for column in ("published_revision", "has_catalogue", "facts_changed_at"):
            tenant.drop_column(column)
    op.drop_table("files")
    with op.batch_alter_table("tags") as tags:
        tags.drop_column("known_from")
    op.drop_table("past_tags")
