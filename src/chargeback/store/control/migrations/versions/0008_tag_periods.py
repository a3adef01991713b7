"""Tags that hold on some days only: an entity may have several values of a key, one after the other."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

_PLACE = ["entity_type", "entity_id", "tag_key"]
_WITHOUT_START = sa.text("valid_from IS NULL")


def upgrade() -> None:
    """Add the dates; tags that are there hold for ever. Null is no value to a unique constraint: the one tag of a key
    without a first day needs an index of its own."""
    with op.batch_alter_table("tags") as tags:
        tags.add_column(sa.Column("valid_from", sa.Date(), nullable=True))
        tags.add_column(sa.Column("valid_to", sa.Date(), nullable=True))
        tags.drop_constraint(op.f("uq_tags_entity_type_entity_id_tag_key"), type_="unique")
        tags.create_unique_constraint(op.f("uq_tags_entity_type_entity_id_tag_key_valid_from"), [*_PLACE, "valid_from"])
    op.create_index(
        "ix_tags_without_start",
        "tags",
        _PLACE,
        unique=True,
        sqlite_where=_WITHOUT_START,
        postgresql_where=_WITHOUT_START,
    )


def downgrade() -> None:
    """Keep of each key the value that has no end, for ever; those that end are removed."""
    op.execute("DELETE FROM tags WHERE valid_to IS NOT NULL")
    op.drop_index("ix_tags_without_start", table_name="tags")
    with op.batch_alter_table("tags") as tags:
        tags.drop_constraint(op.f("uq_tags_entity_type_entity_id_tag_key_valid_from"), type_="unique")
        tags.create_unique_constraint(op.f("uq_tags_entity_type_entity_id_tag_key"), _PLACE)
        tags.drop_column("valid_to")
        tags.drop_column("valid_from")
