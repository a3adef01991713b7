"""By which version of a tenant's own policies each day was calculated."""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add it: policies had no versions before."""
    with op.batch_alter_table("revisions") as revisions:
        revisions.add_column(sa.Column("policy_version", sa.String(length=64), nullable=True))


def downgrade() -> None:
    """Remove it."""
    with op.batch_alter_table("revisions") as revisions:
        revisions.drop_column("policy_version")
