"""Manifests of Strimzi: the value of each KafkaTopic and KafkaUser, from its annotations and labels.

The value is the annotation, else the label, ``chargeback/<key>``, where ``<key>`` is that of the cost category; else
``chargeback/value``; else the label ``<key>`` itself, such as ``team``.

A topic is called as ``spec.topicName`` says, else as the manifest is. A user is known by its principal, with and
without ``User:``: ``CN=<name>`` where it authenticates by TLS, else its name. The annotations ``chargeback/topic`` and
``chargeback/identity`` give other names, separated by commas.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from chargeback.category_sources.contract import IDENTITY, TOPIC, CategoryEntry, CategorySource, SourceContent
from chargeback.category_sources.manifests import Manifest, name_of, names_in, part, read_manifests, text

_TLS: Final = frozenset({"tls", "tls-external"})
_TYPES: Final = {"KafkaTopic": TOPIC, "KafkaUser": IDENTITY}


class StrimziSource(CategorySource):
    """Reads a manifest, or all YAML files of a folder."""

    def read(self, path: Path, key: str) -> SourceContent:
        """Return the entries by value."""
        entries: list[CategoryEntry] = []
        without = []
        for place, manifest in read_manifests(path):
            kind = text(manifest, "kind")
            if kind not in _TYPES or not text(manifest, "apiVersion").startswith("kafka.strimzi.io/"):
                continue
            value = _value(manifest, key)
            if not value:
                without.append(f"left out, because it has no value: {kind} {name_of(manifest)} ({place})")
            else:
                entries += [
                    CategoryEntry(_TYPES[kind], name, value, place=place) for name in _names(manifest, _TYPES[kind])
                ]
        entries.sort(key=lambda entry: (entry.value, entry.entity_type, entry.entity_id))
        return SourceContent(entries, (), without)


source = StrimziSource()


def _value(manifest: Manifest, key: str) -> str:
    annotations, labels = (part(manifest, "metadata", name) for name in ("annotations", "labels"))
    for name in (f"chargeback/{key}", "chargeback/value"):
        found = text(annotations, name) or text(labels, name)
        if found:
            return found
    return text(labels, key)


def _names(manifest: Manifest, entity_type: str) -> list[str]:
    stated = names_in(text(part(manifest, "metadata", "annotations"), f"chargeback/{entity_type}"))
    if stated:
        return stated
    if entity_type == TOPIC:
        return [text(part(manifest, "spec"), "topicName") or name_of(manifest)]
    is_tls = text(part(manifest, "spec", "authentication"), "type") in _TLS
    principal = f"CN={name_of(manifest)}" if is_tls else name_of(manifest)
    return [principal, f"User:{principal}"]
