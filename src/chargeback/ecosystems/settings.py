"""Plugin settings that every ecosystem understands. An ecosystem extends :class:`PluginSettings` with its own keys."""

from decimal import Decimal
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    AnyHttpUrl,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    model_validator,
)

from chargeback.allocation.policies import parse_policies
from chargeback.errors import ConfigurationError
from chargeback.model.money import parse_decimal


class Settings(BaseModel):
    """Base of every settings model: unknown keys are errors, values do not change afterwards, and a value that a
    message might show is hidden (it could be a secret)."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


def _decimal_text(value: object) -> object:
    if isinstance(value, float):
        raise ValueError("write the number in quotes, so that it is exact")  # noqa: TRY004 - pydantic wants ValueError
    return parse_decimal(str(value)) if isinstance(value, str | int) and not isinstance(value, bool) else value


#: A decimal that is written in quotes, so that no digit depends on a binary float.
ExactDecimal = Annotated[Decimal, BeforeValidator(_decimal_text)]


def _checked_url(value: str) -> str:
    try:
        address = AnyHttpUrl(value)
    except ValueError:
        raise ValueError("write an address such as https://metrics.example.com") from None
    if address.username or address.password:
        raise ValueError("keep credentials out of the address; there are keys of their own for them")
    return value.rstrip("/")


#: An http(s) address without a trailing slash.
Url = Annotated[
    str,
    BeforeValidator(lambda value: value.strip() if isinstance(value, str) else value),
    AfterValidator(_checked_url),
]


class MetricsSettings(Settings):
    """A Prometheus-compatible metrics source."""

    type: Literal["prometheus"] = "prometheus"
    url: Url
    auth_type: Literal["none", "basic", "bearer"] = "none"
    username: str | None = None
    password: SecretStr | None = None
    bearer_token: SecretStr | None = None

    @model_validator(mode="after")
    def _credentials(self) -> Self:
        if self.auth_type == "basic" and not (self.username and self.password):
            raise ValueError("username and password required for basic authentication")
        if self.auth_type == "bearer" and not self.bearer_token:
            raise ValueError("bearer_token required for bearer authentication")
        return self


class EmitterSettings(Settings):
    """One emitter: where a finished day is written besides the store."""

    type: Annotated[str, Field(min_length=1)]
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$")]
    aggregation: Literal["hourly", "daily", "weekly", "monthly"] = "daily"
    lookback_days: Annotated[int, Field(ge=1, le=730, strict=True)] | None = None
    params: dict[str, Any] = Field(default={}, repr=False)


def _policies_are_readable(value: dict[str, Any]) -> dict[str, Any]:
    try:
        parse_policies(value, "allocation_policies")
    except ConfigurationError as error:
        raise ValueError("; ".join(str(problem) for problem in error.problems)) from None
    return value


class PluginSettings(Settings):
    """The keys of ``plugin_settings`` that mean the same in every ecosystem."""

    min_refresh_gap_seconds: Annotated[int, Field(ge=0)] = 1800
    metrics_step_seconds: Annotated[int, Field(ge=1, le=86400)] = 3600
    chargeback_granularity: Literal["hourly", "daily"] = "daily"
    metrics: MetricsSettings | None = None
    allocation_policies: Annotated[dict[str, Any], AfterValidator(_policies_are_readable)] = {}
    emitters: list[EmitterSettings] = []
