"""The tables of the control database.

Changed only together with a migration in ``migrations/versions``; a test compares the two. The conditions of partial
indexes on PostgreSQL are in the migrations alone: here, they would load its dialect into every process.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Date,
    DateTime,
    Dialect,
    Float,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
    false,
)

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)


class Instant(TypeDecorator[datetime]):
    """An aware datetime in UTC, on databases that know time zones and on those that do not."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Store UTC."""
        return None if value is None else value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Give UTC back."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


_Id = String(255)
#: The id of a topic is that of its cluster and a name of up to 249 characters.
_LongId = String(512)


def _flag(name: str) -> Column[bool]:
    return Column(name, Boolean, nullable=False, server_default=false())


def _count(name: str) -> Column[int]:
    return Column(name, Integer, nullable=False, server_default="0")


#: One row per UTC day that the pipeline has ever handled: its bill, and what is known of its evidence.
days = Table(
    "days",
    metadata,
    Column("tracking_date", Date, primary_key=True),
    _flag("billing_gathered"),
    _flag("resources_gathered"),
    Column("gathered_fingerprint", String(64)),
    Column("gathered_at", Instant),
    _count("empty_answers"),
    _count("failed_attempts"),
    Column("incomplete", JSON, nullable=False, server_default="{}"),
    _count("evidence_version"),
    _count("billing_lines"),
    Column("error", Text),
)

#: One row per dataset and day of ``days``: how far it is, and from which bill its rows were derived.
dataset_days = Table(
    "dataset_days",
    metadata,
    Column("tracking_date", Date, primary_key=True),
    Column("dataset", String(32), primary_key=True),
    Column("state", String(16), nullable=False),
    _flag("is_measured"),
    Column("fingerprint", String(64)),
    _count("rows"),
    _count("revision"),
    sqlite_with_rowid=False,  # requests read all of it: without the indirection in three quarters of the time
)

#: Per dataset and UTC day: each content that the day has had; the newest is the present one. ``total`` and ``moved``
#: are decimal texts, because SQLite has no exact numbers. ``files`` is what an earlier version recorded: it
#: is read once, when the catalogue is made of it.
revisions = Table(
    "revisions",
    metadata,
    Column("dataset", String(32), primary_key=True),
    Column("tracking_date", Date, primary_key=True),
    Column("revision", Integer, primary_key=True, autoincrement=False),
    Column("calculated_at", Instant, nullable=False),
    Column("run_id", Integer),
    Column("cause", String(32), nullable=False),
    Column("billing_fingerprint", String(64)),
    Column("policies_hash", String(64)),
    Column("rows", BigInteger, nullable=False),
    Column("total", String(64)),
    Column("moved", String(64)),
    Column("files", JSON(none_as_null=True)),
    Column("policy_version", String(64)),
)

#: Which files have the rows of each table and day, and from when to when they had: see ``catalogue``.
files = Table(
    "files",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("table_name", String(32), nullable=False),
    Column("tracking_date", Date),
    Column("path", String(512), nullable=False),
    Column("rows", BigInteger, nullable=False),
    Column("bytes", BigInteger, nullable=False),
    _count("schema_version"),
    Column("since", Instant, nullable=False),
    Column("until", Instant),
    Column("gone_at", Instant),
    Index("ix_files_tracking_date", "tracking_date", "table_name"),
)
_is_present = files.c.until.is_(None)
Index(
    "ix_files_present",
    *(files.c.table_name, files.c.tracking_date),
    sqlite_where=_is_present,
)

#: The text of every policy that was ever used, for each product type, under its hash.
policies = Table(
    "policies",
    metadata,
    Column("hash", String(64), primary_key=True),
    Column("product_type", _Id, primary_key=True),
    Column("text", Text, nullable=False),
    Column("first_used_at", Instant, nullable=False),
)

#: What people changed, and what they were refused.
audit = Table(
    "audit",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("at", Instant, nullable=False),
    Column("who", String(255), nullable=False),
    Column("what", String(64), nullable=False),
    Column("target", Text, nullable=False),
    Column("before", JSON(none_as_null=True)),
    Column("after", JSON(none_as_null=True)),
    Index("ix_audit_at", "at"),
    sqlite_autoincrement=True,
)

#: One row: who works on this tenant, what must survive the worker, and whose storage it is.
tenant = Table(
    "tenant",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("lease_owner", String(255)),
    Column("lease_expires_at", Instant),
    Column("lease_epoch", BigInteger, nullable=False, server_default="0"),
    Column("stage", String(32)),
    Column("stage_date", Date),
    _count("stage_done"),
    _count("stage_total"),
    _count("gather_failures"),
    Column("suspended_because", Text),
    _count("tags_revision"),
    _count("inventory_revision"),
    _count("categories_revision"),
    _count("policies_revision"),
    _count("anomalies_revision"),
    _count("contracts_revision"),
    _count("facts_revision"),
    Column("facts_changed_at", Instant),
    _flag("has_catalogue"),
    _count("published_revision"),
    Column("tenant_id", _Id),
    Column("ecosystem", _Id),
)

#: One row per run, the present one included (``ended_at`` is null until it ends).
runs = Table(
    "runs",
    metadata,
    Column("run_id", Integer, primary_key=True, autoincrement=True),
    Column("lease_epoch", BigInteger, nullable=False),
    Column("started_at", Instant, nullable=False),
    Column("ended_at", Instant),
    Column("outcome", String(32), nullable=False),
    _count("dates_gathered"),
    _count("dates_pending"),
    _count("dates_calculated"),
    _count("chargeback_rows_written"),
    Column("errors", JSON, nullable=False),
    Column("cancelled_by", String(255)),
    Column("errors_from", Date),
    Column("errors_to", Date),
    Index("ix_runs_ended_at", "ended_at"),
)

#: What the runs that are kept have logged.
run_logs = Table(
    "run_logs",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("run_id", Integer, nullable=False),
    Column("at", Instant, nullable=False),
    Column("level", String(16), nullable=False),
    Column("message", Text, nullable=False),
    Index("ix_run_logs_run_id", "run_id"),
)


def _inventory_columns() -> list[Column[Any]]:
    return [
        Column("display_name", Text),
        Column("created_at", Instant),
        Column("deleted_at", Instant),
        Column("last_seen_at", Instant, nullable=False),
        Column("metadata", JSON, nullable=False),
    ]


resources = Table(
    "resources",
    metadata,
    Column("resource_id", _LongId, primary_key=True),
    Column("resource_type", String(64), nullable=False),
    Column("parent_id", _Id),
    Column("owner_id", _Id),
    Column("active_as", _Id),
    *_inventory_columns(),
    Index("ix_resources_resource_type", "resource_type", "resource_id"),
    Index("ix_resources_parent_id", "parent_id"),
)

identities = Table(
    "identities",
    metadata,
    Column("identity_id", _Id, primary_key=True),
    Column("identity_type", String(64), nullable=False),
    *_inventory_columns(),
    Index("ix_identities_identity_type", "identity_type", "identity_id"),
)

#: Accesses that make an identity active on a resource while they last.
grants = Table(
    "grants",
    metadata,
    Column("grant_id", _Id, primary_key=True),
    Column("resource_id", _Id, primary_key=True),
    Column("identity_id", _Id, nullable=False),
    Column("created_at", Instant),
    Column("deleted_at", Instant),
    Column("last_seen_at", Instant, nullable=False),
)

#: Per listed type: how many complete but entirely empty listings came in a row.
listings = Table(
    "listings",
    metadata,
    Column("type", String(64), primary_key=True),
    _count("empty_in_a_row"),
)

#: Per cluster: the first and the last UTC day on which the metrics named any topic of it.
topic_sightings = Table(
    "topic_sightings",
    metadata,
    Column("cluster_id", _Id, primary_key=True),
    Column("first_day", Date, nullable=False),
    Column("last_day", Date, nullable=False),
)

#: Per day and cluster: in how many runs the topic metrics could not be had.
topic_failures = Table(
    "topic_failures",
    metadata,
    Column("tracking_date", Date, primary_key=True),
    Column("cluster_id", _Id, primary_key=True),
    _count("failures"),
)

#: Per emitter and first day of a period: what became of it. ``version`` is that of the facts that were emitted, or
#: that it was tried with ``attempts`` times.
emissions = Table(
    "emissions",
    metadata,
    Column("emitter", _Id, primary_key=True),
    Column("tracking_date", Date, primary_key=True),
    Column("state", String(16), nullable=False),
    Column("version", String(64), nullable=False),
    _count("attempts"),
    Column("error", Text),
    Column("changed_at", Instant, nullable=False),
)

#: Views of the data that people have saved: a page and its query.
views = Table(
    "views",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("name", String(255), nullable=False),
    Column("page", String(64), nullable=False),
    Column("query", Text, nullable=False),
    Column("created_by", String(255), nullable=False),
    Column("created_at", Instant, nullable=False),
    UniqueConstraint("created_by", "name"),
    sqlite_autoincrement=True,  # an id is never given twice: links to a removed view lead nowhere
)

#: Remarks on days. ``scope`` is the digest of the scope of the caller who wrote it, null without one; ``version`` grows
#: with each change.
notes = Table(
    "notes",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("version", Integer, nullable=False),
    Column("scope", String(32)),
    Column("start_date", Date, nullable=False),
    Column("end_date", Date, nullable=False),
    Column("text", Text, nullable=False),
    Column("created_by", String(255), nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("changed_by", String(255), nullable=False),
    Column("changed_at", Instant, nullable=False),
    sqlite_autoincrement=True,  # an id is never given twice: a link to a removed note leads nowhere
)

#: Every version of each cost category; the present one has the highest number. The document is JSON, and null in a
#: version that removed the category.
cost_categories = Table(
    "cost_categories",
    metadata,
    Column("key", String(64), primary_key=True),
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("document", Text),
    Column("who", String(255), nullable=False),
    Column("at", Instant, nullable=False),
    Column("reason", Text),
)

#: Findings that were put off; ``until`` is null for good.
finding_snoozes = Table(
    "finding_snoozes",
    metadata,
    Column("finding_id", String(32), primary_key=True),
    Column("reason", Text, nullable=False),
    Column("until", Date),
    Column("created_by", String(255), nullable=False),
    Column("created_at", Instant, nullable=False),
)

#: What recipients say of their statements, in order; nothing is ever changed. ``grouping`` is what statements are made
#: by; ``digest`` is that of its content, null in replies that an earlier version recorded.
statement_replies = Table(
    "statement_replies",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("number", String(512), nullable=False),
    Column("period", String(7), nullable=False),
    Column("grouping", String(80), nullable=False),
    Column("value", String(512), nullable=False),
    Column("revision", Integer, nullable=False),
    Column("digest", String(32)),
    Column("verdict", String(16), nullable=False),
    Column("note", Text, nullable=False),
    Column("data_through", Date),
    Column("created_by", String(255), nullable=False),
    Column("created_at", Instant, nullable=False),
    Index("ix_statement_replies_period", "period", "grouping"),
    sqlite_autoincrement=True,
)

#: Tokens of machines. Of the secret only its SHA-256 is kept; ``scope`` is null for all rows.
access_tokens = Table(
    "access_tokens",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("name", String(64), nullable=False),
    Column("digest", String(64), nullable=False),
    Column("rights", JSON, nullable=False),
    Column("scope", JSON(none_as_null=True)),
    Column("created_at", Instant, nullable=False),
    Column("created_by", String(255), nullable=False),
    Column("expires_at", Instant),
    Column("revoked_at", Instant),
    Column("last_used_at", Instant),
    UniqueConstraint("digest"),
    sqlite_autoincrement=True,
)
#: A name is free again when its token was revoked.
_in_use = access_tokens.c.revoked_at.is_(None)
Index(
    "ix_access_tokens_in_use",
    access_tokens.c.name,
    unique=True,
    sqlite_where=_in_use,
)

#: Tags as they were before they were changed or removed: what was known from when to when.
past_tags = Table(
    "past_tags",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("entity_type", String(16), nullable=False),
    Column("entity_id", _LongId, nullable=False),
    Column("tag_key", String(64), nullable=False),
    Column("tag_value", String(255), nullable=False),
    Column("valid_from", Date),
    Column("valid_to", Date),
    Column("known_from", Instant, nullable=False),
    Column("known_until", Instant, nullable=False),
    Index("ix_past_tags_known_until", "known_until"),
)

tags = Table(
    "tags",
    metadata,
    Column("tag_id", Integer, primary_key=True, autoincrement=True),
    Column("tenant_id", _Id, nullable=False),
    Column("entity_type", String(16), nullable=False),
    Column("entity_id", _LongId, nullable=False),
    Column("tag_key", String(64), nullable=False),
    Column("tag_value", String(255), nullable=False),
    Column("created_by", String(255), nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("valid_from", Date),
    Column("valid_to", Date),
    Column("known_from", Instant, nullable=False),
    UniqueConstraint("entity_type", "entity_id", "tag_key", "valid_from"),
    Index("ix_tags_tag_key", "tag_key", "tag_value"),
)
_without_start = tags.c.valid_from.is_(None)
Index(
    "ix_tags_without_start",
    *(tags.c.entity_type, tags.c.entity_id, tags.c.tag_key),
    unique=True,
    sqlite_where=_without_start,
)

#: What was done to months, in order: each was closed, reopened or sealed. Nothing is ever changed. ``receipt`` is the
#: canonical JSON of a receipt, ``digest`` its SHA-256; ``at`` is when it took effect in the catalogue. The display
#: names of then are in the document with the digest ``names_digest``. ``signature`` is that of the receipt by the
#: private key of ``public_key``, where the tenant has one.
closings = Table(
    "closings",
    metadata,
    Column("n", Integer, primary_key=True, autoincrement=False),
    Column("period", String(7), nullable=False),
    Column("kind", String(16), nullable=False),
    Column("at", Instant, nullable=False),
    Column("receipt", Text, nullable=False),
    Column("digest", String(64), nullable=False),
    Column("names_digest", String(64)),
    Column("idempotency_key", String(255)),
    Column("public_key", String(128)),
    Column("signature", String(128)),
    UniqueConstraint("idempotency_key"),
)

#: What has happened and may be reported, in order; ``dedupe_key`` makes it one.
events = Table(
    "events",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("at", Instant, nullable=False),
    Column("kind", String(64), nullable=False),
    Column("subject", String(255), nullable=False),
    Column("body", JSON, nullable=False),
    Column("dedupe_key", String(255), nullable=False),
    UniqueConstraint("dedupe_key"),
    Index("ix_events_at", "at"),
    sqlite_autoincrement=True,
)

#: How far each sink of notifications is: all events up to the ``cursor`` are delivered, or are among the deliveries.
sinks = Table(
    "sinks",
    metadata,
    Column("name", String(32), primary_key=True),
    Column("cursor", Integer, nullable=False),
)

#: The events that are, or were, sent to a sink: ``next_at`` is when a pending one is tried (again).
deliveries = Table(
    "deliveries",
    metadata,
    Column("sink", String(32), primary_key=True),
    Column("event_id", Integer, primary_key=True, autoincrement=False),
    Column("subject", String(255), nullable=False),
    Column("state", String(16), nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("next_at", Instant, nullable=False),
    Column("last_error", Text, nullable=True),
    Index("ix_deliveries_state", "state"),
)

#: What has stood out; ``told`` is the impact that was reported last, null if it was not, and ``told_at`` when it was
#: first; ``scope`` says within which scope of a sink, empty for all costs.
anomalies = Table(
    "anomalies",
    metadata,
    Column("id", String(16), primary_key=True),
    Column("first_date", Date, nullable=False),
    Column("state", String(16), nullable=False),
    Column("impact", Float, nullable=False),
    Column("told", Float),
    Column("told_at", Instant),
    Column("scope", String(16), nullable=False, server_default=""),
)

#: What people know of days that stand out, or will, of an identity or of a value of a cost category, if that is not
#: empty; ``product_category`` is null for all of them.
anomaly_marks = Table(
    "anomaly_marks",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("category", String(128), nullable=False, server_default=""),
    Column("who", String(255), nullable=False),
    Column("product_category", String(255)),
    Column("status", String(16), nullable=False),
    Column("start_date", Date, nullable=False),
    Column("end_date", Date, nullable=False),
    Column("note", Text, nullable=False),
    Column("created_by", String(255), nullable=False),
    Column("created_at", Instant, nullable=False),
)

#: Requests to close a month that a second person has to confirm; the newest of a month counts.
closing_requests = Table(
    "closing_requests",
    metadata,
    Column("period", String(7), primary_key=True),
    Column("digest", String(64), nullable=False),
    Column("requested_by", String(255), nullable=False),
    Column("requested_at", Instant, nullable=False),
)

#: Amounts that people move or add by hand, from ``period`` to ``until`` (the same month, or null without an end).
#: ``amount`` is a decimal text. A removed one stays known: ``removed_at``.
adjustments = Table(
    "adjustments",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("period", String(7), nullable=False),
    Column("until", String(7)),
    Column("grouping", String(80), nullable=False),
    Column("value", String(512), nullable=False),
    Column("from_value", String(512)),
    Column("amount", String(64), nullable=False),
    Column("kind", String(16), nullable=False),
    Column("applies_to", String(7)),
    Column("reason", Text, nullable=False),
    Column("reference", String(255)),
    Column("reverses", Integer),
    Column("idempotency_key", String(255)),
    Column("created_by", String(255), nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("removed_by", String(255)),
    Column("removed_at", Instant),
    UniqueConstraint("idempotency_key"),
    sqlite_autoincrement=True,
)

#: The invoices of a month, as their issuers numbered them.
invoices = Table(
    "invoices",
    metadata,
    Column("period", String(7), primary_key=True),
    Column("invoice_id", String(255), primary_key=True),
    Column("document", Text, nullable=False),
    Column("who", String(255), nullable=False),
    Column("at", Instant, nullable=False),
)

#: Simulations that were asked for over HTTP, and what they found.
simulations = Table(
    "simulations",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("asked", Text, nullable=False),
    Column("asked_by", String(255), nullable=False),
    Column("asked_at", Instant, nullable=False),
    Column("state", String(16), nullable=False),
    Column("noted_at", Instant, nullable=False),
    _count("done"),
    _count("days"),
    Column("answer", Text),
    Column("error", Text),
)

#: Versions of the tenant's own policies that were applied from a plan; ``policies`` as JSON.
applied_policies = Table(
    "applied_policies",
    metadata,
    Column("effective_from", Date, primary_key=True),
    Column("reason", Text, nullable=False),
    Column("policies", Text, nullable=False),
    Column("plan", String(64), nullable=False),
    Column("applied_by", String(255), nullable=False),
    Column("applied_at", Instant, nullable=False),
)

#: What the tenant's ecosystem shipped as policies: each version from the first day that it calculates on, the first
#: one from ever on; ``policies`` as JSON, ``software`` is the version of this package.
shipped_policies = Table(
    "shipped_policies",
    metadata,
    Column("effective_from", Date, primary_key=True),
    Column("policies", Text, nullable=False),
    Column("software", String(64), nullable=False),
    Column("recorded_at", Instant, nullable=False),
)

#: The days of shadows; amounts as texts.
shadow_days = Table(
    "shadow_days",
    metadata,
    Column("name", String(32), primary_key=True),
    Column("tracking_date", Date, primary_key=True),
    Column("revision", Integer, nullable=False),
    Column("policies_hash", String(64), nullable=False),
    Column("billed", Text, nullable=False),
    Column("moved", Text, nullable=False),
)

#: Budgets: every version that they have had; ``document`` is null where one was removed.
budgets = Table(
    "budgets",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("document", Text),
    Column("who", String(255), nullable=False),
    Column("at", Instant, nullable=False),
    Column("reason", Text),
)

#: What was found of a budget and a month when it was looked at last, as JSON.
budget_states = Table(
    "budget_states",
    metadata,
    Column("budget_id", String(64), primary_key=True),
    Column("period_id", String(7), primary_key=True),
    Column("state", Text, nullable=False),
)
