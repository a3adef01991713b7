"""Plugin settings of all ecosystems. An ecosystem extends :class:`PluginSettings` with its own keys."""

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from chargeback.allocation.policies import parse_policies
from chargeback.errors import ConfigurationError
from chargeback.settings import MAX_WAIT_SECONDS, ExactDecimal, LocalPath, Settings, Url
from chargeback.sources.credentials import MetricsSettings

__all__ = ["EmitterSettings", "ExactDecimal", "LocalPath", "MetricsSettings", "PluginSettings", "Url"]


def _label(value: str) -> str:
    if not re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_]*", value):
        raise ValueError("should be the name of a label")
    return value


#: The name of a label of metrics.
LabelName = Annotated[str, AfterValidator(_label)]


class EmitterSettings(Settings):
    """One emitter, which writes finished days to another place."""

    type: Annotated[str, Field(min_length=1)]
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$")]
    aggregation: Literal["hourly", "daily", "weekly", "monthly"] = "daily"
    lookback_days: Annotated[int, Field(ge=1, le=730, strict=True)] | None = None
    params: dict[str, Any] = Field(default={}, repr=False)


def _policies_are_readable(value: dict[str, Any] | list[Any]) -> dict[str, Any] | list[Any]:
    try:
        parse_policies(value, "allocation_policies")
    except ConfigurationError as error:
        raise ValueError("; ".join(str(problem) for problem in error.problems)) from None
    return value


class PluginSettings(Settings):
    """The keys of ``plugin_settings`` that all ecosystems share."""

    min_refresh_gap_seconds: Annotated[int, Field(ge=0, le=MAX_WAIT_SECONDS)] = 1800
    metrics_step_seconds: Annotated[int, Field(ge=1, le=86400)] = 3600
    chargeback_granularity: Literal["hourly", "daily"] = "daily"
    metrics: MetricsSettings | None = None
    allocation_policies: Annotated[dict[str, Any] | list[Any], AfterValidator(_policies_are_readable)] = Field(
        default={}
    )
    emitters: list[EmitterSettings] = Field(default=[])
