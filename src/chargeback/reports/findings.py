"""Findings: what costs something without being used, what that proves, and what can be done about it."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection

from chargeback.model.topics import topic_resource_id
from chargeback.store.control.inventory_lists import IDENTITIES, RESOURCES
from chargeback.store.control.names import Named, names_of, owners_of
from chargeback.store.control.snoozes import Snooze
from chargeback.store.queries.findings import (
    IDLE_IDENTITY,
    IDLE_RESOURCE,
    KINDS,
    TOPIC_NEVER_READ,
    TOPIC_NEVER_WRITTEN,
    TOPIC_WITHOUT_TRAFFIC,
    Unused,
    unused,
)
from chargeback.store.queries.reader import TenantReader

NONE: Final = "none"
PARTIAL: Final = "partial"
FULL: Final = "full"
HIGH: Final = "high"
MEDIUM: Final = "medium"
LOW: Final = "low"

_TOPIC_SAVES: Final = (
    "Deleting it saves what its stored bytes cost. Its part of the cluster's capacity and of other costs remains, and "
    "the other topics bear it."
)
_WHY: Final = {
    TOPIC_WITHOUT_TRAFFIC: "Nothing was written to the topic or read from it on any measured day since {since}.",
    TOPIC_NEVER_READ: "The topic was written to, but not read on any measured day since {since}.",
    TOPIC_NEVER_WRITTEN: "The topic was read, but not written to on any measured day since {since}.",
    IDLE_RESOURCE: "Every measure of the resource was zero on all measured days since {since}, and it is billed.",
    IDLE_IDENTITY: "The identity bears a part of what it may use, because it holds a key or owns something, and used "
    "none of it on any measured day since {since}.",
}
_ACTION: Final = {
    TOPIC_WITHOUT_TRAFFIC: f"Ask the owner whether the topic is still needed. {_TOPIC_SAVES}",
    TOPIC_NEVER_READ: f"Ask who needs the data; stop the producer or shorten the retention. {_TOPIC_SAVES}",
    TOPIC_NEVER_WRITTEN: f"Ask whether the readers still expect data, or stop them. {_TOPIC_SAVES}",
    IDLE_RESOURCE: "Delete the resource if nobody needs it: its billing lines end with it.",
    IDLE_IDENTITY: "Delete the keys of the identity if nobody needs them. That saves nothing of the bill: the others "
    "who use the resources bear its part.",
}


@dataclass(frozen=True)
class Finding:
    """What is unused, who owns it, and how it was put off, if it was.

    ``avoidable`` tells whether none, a part, or all of the monthly cost would not be charged without the subject;
    ``confidence`` is high if every day since was measured, low if less than half were.
    """

    facts: Unused
    subject_type: str
    subject_id: str
    display_name: str | None
    owner: str | None
    tags: Mapping[str, str]
    snooze: Snooze | None = None

    @property
    def id(self) -> str:
        """The same for the same kind and subject, for ever."""
        return finding_id(self.facts.kind, self.subject_id)

    @property
    def avoidable(self) -> str:
        """How much of the monthly cost goes with the subject."""
        if not self.facts.avoidable:
            return NONE
        return FULL if self.facts.avoidable >= self.facts.monthly_cost else PARTIAL

    @property
    def confidence(self) -> str:
        """How much the measurements say."""
        if not self.facts.unmeasured_days:
            return HIGH
        return MEDIUM if self.facts.unmeasured_days <= self.facts.measured_days else LOW

    @property
    def why(self) -> str:
        """What was measured, in a sentence."""
        return _WHY[self.facts.kind].format(since=self.facts.since)

    @property
    def action(self) -> str:
        """What can be done, and what that saves."""
        return _ACTION[self.facts.kind]


def finding_id(kind: str, subject_id: str) -> str:
    """Return the id of the finding of a kind about a subject.

    >>> finding_id("idle_identity", "sa-123abc")
    '66863039a46d3b69'
    """
    return hashlib.blake2b(f"{kind} {subject_id}".encode(), digest_size=8).hexdigest()


def findings(
    reader: TenantReader, connection: Connection, min_days: int, kinds: Collection[str] = KINDS
) -> list[Finding]:
    """Return the findings in the rows of a reader, by descending cost.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the tenant's storage cannot be read.
    """
    found = unused(reader, kinds or KINDS, min_days)
    identities = names_of(connection, IDENTITIES, {each.name for each in found if each.kind == IDLE_IDENTITY})
    ids = {_resource_id(each) for each in found if each.kind != IDLE_IDENTITY}
    resources, owners = names_of(connection, RESOURCES, ids), owners_of(connection, ids)
    return [_finding(reader, each, identities, resources, owners) for each in found]


def _resource_id(each: Unused) -> str:
    return topic_resource_id(each.place, each.name) if each.name else each.place


def _finding(
    reader: TenantReader,
    each: Unused,
    identities: Mapping[str, Named],
    resources: Mapping[str, Named],
    owners: Mapping[str, str],
) -> Finding:
    if each.kind == IDLE_IDENTITY:
        known, tags = identities.get(each.name), reader.tags.resolve(each.name, "", each.last_measured)
        kind = "identity" if known is None else known.type
        return Finding(each, kind, each.name, None if known is None else known.name, each.name, tags)
    subject = _resource_id(each)
    known, tags = resources.get(subject), reader.tags.resolve("", subject, each.last_measured)
    kind = ("topic" if each.name else "resource") if known is None else known.type
    name = each.name or (None if known is None else known.name)
    return Finding(each, kind, subject, name, owners.get(subject), tags)
