"""The explanation of a stored topic row: which part of a line of a cluster is attributed to one of its topics, and why.

As with chargebacks, the line is attributed once more from the evidence of the revision, and compared with what is
stored; without the evidence or the settings of then, nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime
from fnmatch import fnmatchcase
from typing import Any

import pyarrow as pa

from chargeback.allocation.explain import PortionExplanation, explain_topic
from chargeback.allocation.methods import MethodKind
from chargeback.allocation.topics import lines_of_clusters
from chargeback.model.topics import ATTRIBUTION_FAILED, EVEN_SPLIT, UNATTRIBUTED, TopicPlan, topic_resource_id
from chargeback.recompute.stored_day import (
    Explained,
    LineNotFound,
    LineRows,
    StoredDay,
    first,
    resource_name,
    where,
)
from chargeback.store.control.inventory_lists import RESOURCES, names_of
from chargeback.store.control.topics import resource_ids
from chargeback.store.queries.as_of import REVISED_TOPICS
from chargeback.store.tenant import TenantStore


@dataclass(frozen=True, slots=True)
class TopicKey:
    """What is to be explained: the part of a topic in one line of a day, now or ``as_of`` an earlier instant."""

    day: date
    line_id: str
    topic_name: str
    as_of: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class TopicExplanation(Explained):
    """Why a topic has an amount of a line, or why it has none. ``row`` has the columns of TOPIC_ATTRIBUTIONS, and
    ``portion`` is the whole line.

    Attributes:
        key: what is explained.
        method: how the line was attributed: one of the attribution methods; None if that is not known.
    """

    key: TopicKey
    method: str | None


def explain_topic_row(store: TenantStore, plan: TopicPlan, key: TopicKey) -> TopicExplanation:
    """Return the explanation of what a topic has of a line.

    Raises:
        LineNotFound: the day is not attributed, or has no such line, or the line is none that is attributed.
        HistoryGone: the rows of that instant are no longer kept.
        AllocationError: the amounts of the day do not fit 38 digits.
        StorageError: the tenant's storage cannot be read.
    """
    day = StoredDay(store, REVISED_TOPICS, key.day, key.as_of)
    of_line = where(day.rows, line_id=key.line_id)
    row = first(of_line, topic_name=key.topic_name)
    (billing, usage), missing = day.evidence()
    lines = None if billing is None else where(billing, line_id=key.line_id)
    line = None if lines is None else first(lines)
    if line is None and of_line.num_rows == 0:
        raise LineNotFound(f"The bill of {key.day} has no line {key.line_id!r}.")
    failed = ATTRIBUTION_FAILED in of_line["attribution_method"].to_pylist()
    if failed and lines is not None:  # that there were none needs no measurements
        usage, missing = None, None
    portion, method, is_same = None, None, None
    if line is None:
        missing = missing or "the line is not on the bill that is kept"
    elif lines is not None and (failed or usage is not None):
        _check_is_attributed(store, plan, key, lines)
        portion = explain_topic(key.day, lines, usage, plan, key.topic_name, resource_name(store, line))
        method = _method(portion, plan, line["product_type"], failed=failed)
        is_same = _is_same(row, portion, key.topic_name, method)
        # Settings are not kept. Others than those of then may explain a row only where they give the same.
        if not is_same and (day.revision is None or day.revision.policies_hash != plan.hash):
            portion, method, is_same = None, None, None
            missing = "the settings of topic attribution that were in force are not recorded; attribute the day again"
    if portion is not None and row is None and not _is_known(store, plan, key, line, usage):
        portion = replace(portion, why_nothing=f"no topic of {_cluster_name(store, line)} has this name")
    return TopicExplanation(
        key=key,
        row=row,
        line=line,
        billed=line or first(of_line),
        method=method or (None if row is None else row["attribution_method"]),
        portion=portion,
        missing=missing,
        siblings=LineRows.of(of_line, line),
        revision=day.revision.revision if day.revision else None,
        revisions=day.amounts(key.line_id, line, lambda rows: first(rows, topic_name=key.topic_name)),
        is_same=is_same,
    )


def _is_known(
    store: TenantStore, plan: TopicPlan, key: TopicKey, line: Mapping[str, Any] | None, usage: pa.Table | None
) -> bool:
    """Return whether there is a topic: it was ever found, or measured on the day, or is never attributed to."""
    topic = key.topic_name
    if topic == UNATTRIBUTED or any(fnmatchcase(topic, each) for each in plan.exclude_patterns):
        return True
    if usage is not None and where(usage, subject=topic).num_rows:
        return True
    id_ = topic_resource_id((line or {}).get("resource_id", ""), topic)
    with store.control.read() as connection:
        return bool(names_of(connection, RESOURCES, [id_]))


def _cluster_name(store: TenantStore, line: Mapping[str, Any] | None) -> str:
    return "" if line is None else resource_name(store, line) or line["resource_id"]


def _check_is_attributed(store: TenantStore, plan: TopicPlan, key: TopicKey, lines: pa.Table) -> None:
    with store.control.read() as connection:
        clusters = resource_ids(connection, plan.cluster_type)
    if lines_of_clusters(lines, clusters, plan).num_rows == 0:
        product_type = lines["product_type"][0].as_py()
        raise LineNotFound(
            f"Line {key.line_id!r} of {key.day} is not attributed to topics: it is no line of a cluster, or its "
            f"product type {product_type} is not attributed."
        )


def _method(portion: PortionExplanation, plan: TopicPlan, product_type: str, *, failed: bool) -> str:
    """Return the attribution method that the calculation gives."""
    if failed:
        return ATTRIBUTION_FAILED
    named, applied = plan.method_of(product_type), portion.applied
    if named is None or applied is None or applied.method.kind is not MethodKind.USAGE:
        return EVEN_SPLIT
    return named.method


def _is_same(row: Mapping[str, Any] | None, portion: PortionExplanation, topic: str, method: str | None) -> bool:
    """Return whether a calculation gives the stored row, or that there is none."""
    if row is None:
        return portion.why_nothing is not None
    split, arithmetic = portion.usage_split, portion.arithmetic
    mine = None if split is None else split.participant(topic)
    if portion.why_nothing is not None or split is None or mine is None or arithmetic is None:
        return False
    found = (arithmetic.amount, method, *((mine.value, split.total) if split.measure else (None, None)))
    names = ("amount", "attribution_method", "topic_usage", "total_usage")
    return all(row[name] == each for name, each in zip(names, found, strict=True))
