"""The owner of a storage: one tenant, permanently. Another tenant's configuration that names the storage is refused,
because it would mix the bills of two organizations."""

from __future__ import annotations

from dataclasses import dataclass

from chargeback.errors import ForeignStorage


@dataclass(frozen=True, slots=True)
class StorageOwner:
    """The tenant whose data a storage has: its ``tenant_id``, and its ecosystem if known."""

    tenant_id: str
    ecosystem: str | None

    def __str__(self) -> str:
        known = "" if self.ecosystem is None else f" ({self.ecosystem})"
        return f"tenant_id {self.tenant_id}{known}"

    def check(self, recorded: StorageOwner | None, place: str) -> None:
        """Check that the recorded owner of ``place`` is this tenant, or that none is recorded yet.

        Raises:
            ForeignStorage: it is another tenant's.
        """
        if recorded is None:
            return
        ecosystem = self.ecosystem if recorded.ecosystem is None else recorded.ecosystem
        if (recorded.tenant_id, ecosystem) != (self.tenant_id, self.ecosystem):
            raise ForeignStorage(
                f"{place} belongs to {recorded}, and the configuration uses it for {self}: "
                "configure another storage for this tenant, or restore the previous tenant_id and ecosystem"
            )
