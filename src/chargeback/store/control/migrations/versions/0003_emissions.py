"""Emissions: what each emitter has written for each date."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "emissions",
        sa.Column("emitter", sa.String(length=255), nullable=False),
        sa.Column("tracking_date", sa.Date(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("version", sa.String(length=64), nullable=False),
        sa.Column("attempts", sa.Integer(), server_default="0", nullable=False),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("changed_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("emitter", "tracking_date", name=op.f("pk_emissions")),
    )


def downgrade() -> None:
    """Remove the table; every emitter then starts from the beginning."""
    op.drop_table("emissions")
