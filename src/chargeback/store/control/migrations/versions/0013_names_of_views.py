"""The name of a view is unique among those of its author, so that a refusal says nothing about views of others."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

_BY_AUTHOR = "uq_views_created_by_name"
_OF_ALL = "uq_views_name"


def upgrade() -> None:
    """Replace the constraint."""
    _replace(_OF_ALL, _BY_AUTHOR, ["created_by", "name"])


def downgrade() -> None:
    """Replace the constraint; of views with the same name, all but the first get their id added to it."""
    op.execute(
        "UPDATE views SET name = substr(name, 1, 243) || ' (' || id || ')' WHERE EXISTS "
        "(SELECT 1 FROM views AS earlier WHERE earlier.name = views.name AND earlier.id < views.id)"
    )
    _replace(_BY_AUTHOR, _OF_ALL, ["name"])


def _replace(old: str, new: str, columns: list[str]) -> None:
    """Replace a unique constraint. SQLite recreates the table for it; ids are never used again."""
    connection = op.get_bind()
    is_sqlite = connection.dialect.name == "sqlite"
    last = None
    if is_sqlite:
        last = connection.execute(sa.text("SELECT seq FROM sqlite_sequence WHERE name = 'views'")).scalar()
    with op.batch_alter_table("views", table_kwargs={"sqlite_autoincrement": True}) as views:
        views.drop_constraint(op.f(old), type_="unique")
        views.create_unique_constraint(op.f(new), columns)
    if last is not None:
        connection.execute(sa.text("DELETE FROM sqlite_sequence WHERE name = 'views'"))
        connection.execute(sa.text("INSERT INTO sqlite_sequence (name, seq) VALUES ('views', :last)"), {"last": last})
