"""The interface of a source of cost categories: it reads a file or a folder, and says which identity, resource or topic
has which value.

Sources are found in the entry-point group ``chargeback.category_sources``, which names a :class:`CategorySource`. They
never access the store: what they return becomes rules of a cost category, which name the source in their ids.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Final

from chargeback.model.dated import FOREVER, Period

IDENTITY: Final = "identity"
RESOURCE: Final = "resource"
TOPIC: Final = "topic"
#: What an entry can be about.
ENTITY_TYPES: Final = (IDENTITY, RESOURCE, TOPIC)


@dataclass(frozen=True, slots=True)
class CategoryEntry:
    """One value of one entity: an identity, a resource or a topic, by its exact id or name, on some days or for ever.

    An entity whose cost is split has several entries of the same days, each with a ``percent``; these sum to 100.
    ``place`` says where the entry was found, such as ``line 3``, for messages.
    """

    entity_type: str
    entity_id: str
    value: str
    percent: Decimal | None = None
    during: Period = FOREVER
    place: str = ""


@dataclass(frozen=True, slots=True)
class RegisteredValue:
    """An entry for the register of values: its key, what it is called, and the value above it."""

    key: str
    name: str | None = None
    parent: str | None = None


@dataclass(frozen=True, slots=True)
class SourceContent:
    """What a source has read. An entity has one entry on a day, or those of a split.

    ``notes`` are sentences about what was left out, for the person who imports.
    """

    entries: Sequence[CategoryEntry] = ()
    values: Sequence[RegisteredValue] = ()
    notes: Sequence[str] = field(default=())


class CategorySource(ABC):
    """A source: the object that the entry point names. Its name on the command line is the entry point's name."""

    @abstractmethod
    def read(self, path: Path, key: str) -> SourceContent:
        """Read a file or a folder, for the cost category ``key``.

        Raises:
            ConfigurationError: what is read is not valid; each problem has a place, such as ``topics.yaml``, as path.
            SourceError: it cannot be read.
        """
