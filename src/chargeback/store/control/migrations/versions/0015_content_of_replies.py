"""To which content of a statement its recipient replied."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; of earlier replies the content is not known."""
    with op.batch_alter_table("statement_replies") as replies:
        replies.add_column(sa.Column("digest", sa.String(length=32), nullable=True))


def downgrade() -> None:
    """Remove the column."""
    with op.batch_alter_table("statement_replies") as replies:
        replies.drop_column("digest")
