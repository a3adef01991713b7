"""Runs of the pipeline."""

from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from chargeback.api.parameters import Day, StrictModel
from chargeback.api.problems import InvalidParameter
from chargeback.api.schemas.common import Instant, ResponseModel


class RunBody(StrictModel):
    """What the run shall do; without a body: everything that is due."""

    start_date: Day | None = Field(default=None, description="First UTC day to calculate, inclusive.")
    end_date: Day | None = Field(default=None, description="Last UTC day to calculate, inclusive.")
    recalculate: bool = Field(default=False, strict=True, description="Fetch usage again and recalculate these days.")
    accept_less: bool = Field(
        default=False,
        strict=True,
        description="With `recalculate`: also accept bills and usage that are smaller than the stored ones.",
    )

    @classmethod
    def cross_checks(cls, raw: dict[str, Any], now: datetime) -> list[InvalidParameter]:  # noqa: ARG003
        """Check that the start is not after the end."""
        start, end = raw.get("start_date"), raw.get("end_date")
        if isinstance(start, str) and isinstance(end, str) and len(start) == len(end) == 10 and start > end:
            return [InvalidParameter("start_date", f"should not be after the end, {end}")]
        if raw.get("accept_less") is True and raw.get("recalculate") is not True:
            return [InvalidParameter("accept_less", "requires recalculate")]
        return []


class RunAccepted(ResponseModel):
    """A run has begun."""

    tenant_name: str = Field(examples=["acme"])
    status: Literal["started"]
    message: str = Field(examples=["Pipeline run started for tenant acme"])


class RunResult(ResponseModel):
    """How the last run that ended went."""

    dates_gathered: int
    dates_calculated: int
    chargeback_rows_written: int
    errors: list[str]
    completed_at: Instant


class PipelineStatus(ResponseModel):
    """Whether a run is in progress, and how the last one went."""

    tenant_name: str = Field(examples=["acme"])
    is_running: bool
    permanent_failure: str | None = Field(
        description="Why the tenant is suspended, and how to resume it; null if it is not suspended. A caller with a "
        "scope is told that it is, and not why."
    )
    last_run: Instant | None = Field(description="The end of the last finished run.")
    last_result: RunResult | None
