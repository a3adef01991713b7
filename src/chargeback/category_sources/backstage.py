"""Catalog files of Backstage: the owner of what a component, system, API or resource names.

Read of each entity: the annotations ``chargeback/identity``, ``chargeback/resource`` and ``chargeback/topic``
(``kafka/topic`` means the same), each with one name or several, separated by commas. A Resource of the type
``kafka-topic`` is itself a topic, called as the entity is. The value is the annotation ``chargeback/<key>``, where
``<key>`` is that of the cost category, else ``chargeback/value``, else the name of ``spec.owner``.

Groups become entries of the register, if something has their value or that of a group below: their title, and the group
above.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from chargeback.category_sources.contract import (
    IDENTITY,
    RESOURCE,
    TOPIC,
    CategoryEntry,
    CategorySource,
    RegisteredValue,
    SourceContent,
)
from chargeback.category_sources.manifests import Manifest, name_of, names_in, part, read_manifests, text

_KINDS: Final = frozenset({"Component", "System", "Resource", "API"})
_ANNOTATIONS: Final = (
    ("chargeback/identity", IDENTITY),
    ("chargeback/resource", RESOURCE),
    ("chargeback/topic", TOPIC),
    ("kafka/topic", TOPIC),
)
_TOPIC_TYPE: Final = "kafka-topic"


class BackstageSource(CategorySource):
    """Reads a catalog file, or all YAML files of a folder."""

    def read(self, path: Path, key: str) -> SourceContent:
        """Return the entries by value, and the groups that they need."""
        catalog = [
            (place, entity)
            for place, entity in read_manifests(path)
            if text(entity, "apiVersion").startswith("backstage.io/")
        ]
        entries: list[CategoryEntry] = []
        without = []
        for place, entity in catalog:
            if entity.get("kind") in _KINDS:
                value, named = _value(entity, key), list(_entities(entity))
                if named and not value:
                    without.append(f"{entity['kind']} {name_of(entity)} ({place})")
                entries += [CategoryEntry(*each, value, place=place) for each in named if value]
        entries.sort(key=lambda entry: (entry.value, entry.entity_type, entry.entity_id))
        notes = [f"left out, because there is neither an owner nor a value: {each}" for each in without]
        groups = {name_of(entity): entity for _, entity in catalog if entity.get("kind") == "Group"}
        return SourceContent(_distinct(entries), _register(groups, {entry.value for entry in entries}), notes)


source = BackstageSource()


def _value(entity: Manifest, key: str) -> str:
    annotations = part(entity, "metadata", "annotations")
    stated = text(annotations, f"chargeback/{key}") or text(annotations, "chargeback/value")
    return stated or _referenced(text(part(entity, "spec"), "owner"))


def _referenced(reference: str) -> str:
    """Return the name in a reference to an entity.

    >>> _referenced("group:default/payments"), _referenced("payments")
    ('payments', 'payments')
    """
    return reference.rpartition("/")[2].rpartition(":")[2]


def _entities(entity: Manifest) -> Iterator[tuple[str, str]]:
    annotations = part(entity, "metadata", "annotations")
    for name, entity_type in _ANNOTATIONS:
        yield from ((entity_type, each) for each in names_in(text(annotations, name)))
    is_topic = entity.get("kind") == "Resource" and text(part(entity, "spec"), "type") == _TOPIC_TYPE
    if is_topic and not any(name in annotations for name, kind in _ANNOTATIONS if kind == TOPIC):
        yield TOPIC, name_of(entity)


def _distinct(entries: list[CategoryEntry]) -> list[CategoryEntry]:
    """Return the entries without those that say the same as another one: two components may use one topic."""
    return list({(each.entity_type, each.entity_id, each.value): each for each in reversed(entries)}.values())[::-1]


def _register(groups: Mapping[str, Manifest], values: set[str]) -> list[RegisteredValue]:
    """Return the groups that have one of the values, and those above them."""
    needed: dict[str, RegisteredValue] = {}
    waiting = sorted(values & groups.keys(), reverse=True)
    while waiting:
        name = waiting.pop()
        if name not in needed:
            spec: Mapping[str, Any] = part(groups[name], "spec")
            parent = _referenced(text(spec, "parent"))
            title = text(part(spec, "profile"), "displayName") or text(part(groups[name], "metadata"), "title")
            needed[name] = RegisteredValue(name, title or None, parent if parent in groups else None)
            waiting += [parent] if parent in groups else []
    return [needed[name] for name in sorted(needed)]
