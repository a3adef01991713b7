"""A tenant as seen by the front ends."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from chargeback.emitters.prometheus import Exposition
from chargeback.pipeline.run_messages import RunRequest
from chargeback.recompute.explain import AllocationRules
from chargeback.store.tenant import TenantStore


class PipelinePort(Protocol):
    """Something that can run pipelines."""

    def trigger(self, tenant_name: str, request: RunRequest) -> None:
        """Start a run; returns when it holds the tenant's lease.

        Raises:
            LeaseHeld: a run is in progress.
            EngineBusy: the maximum number of runs is in progress.
            TenantSuspended: the tenant is suspended; the message has the reason.
            NoRunner: this process runs no pipelines.
            StorageError: the tenant's storage cannot be used.
        """


@dataclass(frozen=True)
class TenantView:
    """One tenant as seen by the front ends. ``pipeline`` is None if this process runs none (mode ``api``);
    ``exposition`` is what Prometheus can scrape of it, if anything; ``rules`` are those by which its days are
    calculated."""

    tenant_name: str
    tenant_id: str
    ecosystem: str
    lookback_days: int
    store: TenantStore
    pipeline: PipelinePort | None = None
    topic_attribution_status: str = "disabled"
    topic_attribution_error: str | None = None
    exposition: Exposition | None = None
    currency: str = "USD"
    rules: AllocationRules = field(default_factory=AllocationRules)
