"""The first schema: days, tenant, runs, inventory and tags."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create every table."""
    op.create_table(
        "days",
        sa.Column("tracking_date", sa.Date(), nullable=False),
        sa.Column("billing_gathered", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("resources_gathered", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("chargeback_calculated", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("topic_overlay_gathered", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("topic_attribution_calculated", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("gathered_fingerprint", sa.String(length=64), nullable=True),
        sa.Column("calculated_fingerprint", sa.String(length=64), nullable=True),
        sa.Column("gathered_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("empty_answers", sa.Integer(), server_default="0", nullable=False),
        sa.Column("failed_attempts", sa.Integer(), server_default="0", nullable=False),
        sa.Column("metrics_unavailable", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("billing_lines", sa.Integer(), server_default="0", nullable=False),
        sa.Column("chargeback_rows", sa.Integer(), server_default="0", nullable=False),
        sa.Column("error", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("tracking_date", name=op.f("pk_days")),
    )
    op.create_table(
        "grants",
        sa.Column("grant_id", sa.String(length=255), nullable=False),
        sa.Column("resource_id", sa.String(length=255), nullable=False),
        sa.Column("identity_id", sa.String(length=255), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("deleted_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("last_seen_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("grant_id", "resource_id", name=op.f("pk_grants")),
    )
    op.create_table(
        "identities",
        sa.Column("identity_id", sa.String(length=255), nullable=False),
        sa.Column("identity_type", sa.String(length=64), nullable=False),
        sa.Column("display_name", sa.Text(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("deleted_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("last_seen_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("metadata", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("identity_id", name=op.f("pk_identities")),
    )
    op.create_index("ix_identities_identity_type", "identities", ["identity_type", "identity_id"], unique=False)
    op.create_table(
        "listings",
        sa.Column("type", sa.String(length=64), nullable=False),
        sa.Column("empty_in_a_row", sa.Integer(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("type", name=op.f("pk_listings")),
    )
    op.create_table(
        "resources",
        sa.Column("resource_id", sa.String(length=255), nullable=False),
        sa.Column("resource_type", sa.String(length=64), nullable=False),
        sa.Column("parent_id", sa.String(length=255), nullable=True),
        sa.Column("owner_id", sa.String(length=255), nullable=True),
        sa.Column("active_as", sa.String(length=255), nullable=True),
        sa.Column("display_name", sa.Text(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("deleted_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("last_seen_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("metadata", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("resource_id", name=op.f("pk_resources")),
    )
    op.create_index("ix_resources_parent_id", "resources", ["parent_id"], unique=False)
    op.create_index("ix_resources_resource_type", "resources", ["resource_type", "resource_id"], unique=False)
    op.create_table(
        "runs",
        sa.Column("run_id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("lease_epoch", sa.BigInteger(), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("outcome", sa.String(length=32), nullable=False),
        sa.Column("dates_gathered", sa.Integer(), server_default="0", nullable=False),
        sa.Column("dates_pending", sa.Integer(), server_default="0", nullable=False),
        sa.Column("dates_calculated", sa.Integer(), server_default="0", nullable=False),
        sa.Column("chargeback_rows_written", sa.Integer(), server_default="0", nullable=False),
        sa.Column("errors", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", name=op.f("pk_runs")),
    )
    op.create_index("ix_runs_ended_at", "runs", ["ended_at"], unique=False)
    op.create_table(
        "tags",
        sa.Column("tag_id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("tenant_id", sa.String(length=255), nullable=False),
        sa.Column("entity_type", sa.String(length=16), nullable=False),
        sa.Column("entity_id", sa.String(length=255), nullable=False),
        sa.Column("tag_key", sa.String(length=64), nullable=False),
        sa.Column("tag_value", sa.String(length=255), nullable=False),
        sa.Column("created_by", sa.String(length=255), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("tag_id", name=op.f("pk_tags")),
        sa.UniqueConstraint("entity_type", "entity_id", "tag_key", name=op.f("uq_tags_entity_type_entity_id_tag_key")),
    )
    op.create_index("ix_tags_tag_key", "tags", ["tag_key", "tag_value"], unique=False)
    op.create_table(
        "tenant",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("lease_owner", sa.String(length=255), nullable=True),
        sa.Column("lease_expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("lease_epoch", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("stage", sa.String(length=32), nullable=True),
        sa.Column("stage_date", sa.Date(), nullable=True),
        sa.Column("gather_failures", sa.Integer(), server_default="0", nullable=False),
        sa.Column("suspended_because", sa.Text(), nullable=True),
        sa.Column("tags_revision", sa.Integer(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tenant")),
    )


def downgrade() -> None:
    """Drop every table."""
    op.drop_table("tenant")
    op.drop_table("tags")
    op.drop_table("runs")
    op.drop_table("resources")
    op.drop_table("listings")
    op.drop_table("identities")
    op.drop_table("grants")
    op.drop_table("days")
