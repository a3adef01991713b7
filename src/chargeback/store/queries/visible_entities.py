"""What a scope lets someone see beside rows: the identities and resources that occur in them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class VisibleEntities:
    """The ids of identities and of resources; environments, clusters and topics are resources, too."""

    identities: frozenset[str] = frozenset()
    resources: frozenset[str] = frozenset()

    def __or__(self, other: VisibleEntities) -> VisibleEntities:
        return VisibleEntities(self.identities | other.identities, self.resources | other.resources)
