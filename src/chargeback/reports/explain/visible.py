"""Explanations for callers with a scope: the visible rows of the line, and all others as one sum, without counts.

If a cost category of the scope splits the row, its amount is the visible part, as in lists and sums.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from decimal import Decimal
from typing import TypeVar

from pydantic import Field

from chargeback.allocation.explain import OTHERS, Participant, PortionExplanation, UsageSplit
from chargeback.model.money import total
from chargeback.recompute.explain import ExplainKey, Explanation
from chargeback.recompute.explain_topic import TopicKey
from chargeback.recompute.stored_day import Explained, LineNotFound
from chargeback.reports.answers import Exact, ResponseModel
from chargeback.store.queries.chargebacks import rows_of_line, selection_of_line
from chargeback.store.queries.datasets import CHARGEBACKS, TOPIC_ATTRIBUTIONS, Dataset
from chargeback.store.queries.reader import TenantReader

E = TypeVar("E", bound=Explained)


class VisiblePart(ResponseModel):
    """The visible part of a row that a cost category of the caller's scope splits."""

    amount: Exact = Field(description="The visible part, as in lists and sums.")
    others: Exact = Field(description="The rest of the row.")


def as_seen(reader: TenantReader, dataset: Dataset, found: E, visible: Collection[str]) -> tuple[E, VisiblePart | None]:
    """Return the explanation of a row for a reader with a scope: with the ``visible`` participants and the others as
    one sum, and with the visible parts of the amounts of the row and of its revisions. Also return the visible part, or
    None if the whole row is visible. The calculation stays that of the row.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
    """
    portion = None if found.portion is None else _without_counts(found.portion, visible)
    found = replace(found, portion=portion, siblings=replace(found.siblings, rows=None))
    if found.row is None:
        return found, None
    whole: Decimal = found.row["amount"]
    known = [each.amount for each in found.revisions if each.amount is not None]
    selection = selection_of_line(found.row["date"], found.row["line_id"])
    mine, *past = reader.visible_parts(dataset, selection, found.row, [whole, *known])
    if [mine, *past] == [whole, *known]:
        return found, None
    seen = dict(zip(known, past, strict=True))
    revisions = [each if each.amount is None else replace(each, amount=seen[each.amount]) for each in found.revisions]
    part = VisiblePart(amount=mine, others=whole - mine)
    return replace(found, row={**found.row, "amount": mine}, revisions=revisions), part


class VisibleShares:
    """The rows of the line of an explanation that a reader with a scope sees: identities by portion."""

    def __init__(self, reader: TenantReader, key: ExplainKey) -> None:
        """Read which rows are visible.

        Raises:
            LineNotFound: no row of the identity, or of the requested portion, is visible.
            StorageError: the facts cannot be read.
        """
        found = rows_of_line(reader, CHARGEBACKS, key.day, key.line_id, ("identity_id", "portion"))
        self._key = key
        self._rows = found
        mine = {portion for identity, portion in found if identity == key.identity_id}
        if not mine or key.portion not in {None, *mine}:
            raise self._not_found()

    def of(self, found: Explanation) -> frozenset[str]:
        """Return the identities whose rows of the explained portion are visible.

        Raises:
            LineNotFound: the requested identity is not among them.
        """
        visible = frozenset(identity for identity, portion in self._rows if portion == found.key.portion)
        if found.key.identity_id not in visible:
            raise self._not_found()
        return visible

    def _not_found(self) -> LineNotFound:
        return LineNotFound(f"You see no row of {self._key.identity_id!r} of line {self._key.line_id!r}.")


def visible_topics(reader: TenantReader, key: TopicKey) -> frozenset[str]:
    """Return the topics whose rows of a line a reader with a scope sees.

    Raises:
        LineNotFound: the requested topic is not among them.
        StorageError: the facts cannot be read.
    """
    found = rows_of_line(reader, TOPIC_ATTRIBUTIONS, key.day, key.line_id, ("topic_name",))
    visible = frozenset(topic for (topic,) in found)
    if key.topic_name not in visible:
        raise LineNotFound(f"You see no row of the topic {key.topic_name!r} of line {key.line_id!r}.")
    return visible


def with_others(usage_split: UsageSplit, visible: Collection[str]) -> UsageSplit:
    """Return a split with its ``visible`` participants, and the others as one, the last."""
    hidden = [each for each in usage_split.participants if each.identity_id not in visible]
    if not hidden:
        return usage_split
    values = [each.value for each in hidden if each.value is not None]
    weight, whole = sum(each.weight for each in hidden), hidden[0].whole
    others = Participant(OTHERS, total(values) if values else None, weight, whole)
    seen = (each for each in usage_split.participants if each.identity_id in visible)
    return replace(usage_split, participants=(*seen, others))


def _without_counts(portion: PortionExplanation, visible: Collection[str]) -> PortionExplanation:
    """Return a portion with the ``visible`` participants, without the number and the ranks of the others."""
    usage_split, arithmetic = portion.usage_split, portion.arithmetic
    return replace(
        portion,
        methods=tuple(replace(each, candidates=None) for each in portion.methods),
        usage_split=None if usage_split is None else replace(with_others(usage_split, visible), members=None),
        arithmetic=None if arithmetic is None else replace(arithmetic, spare_units=None, remainder_rank=None),
    )
