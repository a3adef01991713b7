"""Settings that ecosystems with constructed costs share: rates, queries, and who pays."""

import re
from collections.abc import Iterable
from decimal import Decimal
from importlib.util import find_spec
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, SecretStr, StringConstraints, field_validator, model_validator

from chargeback import how_to_install
from chargeback.allocation.policies import parse_policies
from chargeback.ecosystems.settings import LabelName, PluginSettings
from chargeback.model.inventory import UNALLOCATED
from chargeback.model.money import PLACES
from chargeback.settings import ExactDecimal, LocalPath, Settings

SECONDS_OF_A_DAY = 86_400
_MAX_RATE = Decimal(10) ** 9
_MATCHER = r'\s*[a-zA-Z_][a-zA-Z0-9_]*\s*(?:=~|!~|!=|=)\s*"(?:[^"\\\n]|\\.)*"\s*'
_MATCHERS = rf"{_MATCHER}(?:,{_MATCHER})*"
_SERIES = re.compile(rf"[a-zA-Z_:][a-zA-Z0-9_:]*(?:\{{(?:{_MATCHERS},?)?\s*\}})?")

#: The types of static identities. All of them pay.
IdentityType = Literal[
    "principal", "service_account", "user", "application", "service", "team", "group", "department", "cost_center"
]
PRINCIPAL = "principal"
#: The measure of presence: at how many steps of the day the discovery query found an identity.
PRESENCE = "presence"


def _rate(value: Decimal) -> Decimal:
    if not 0 <= value < _MAX_RATE or value != round(value, PLACES):
        raise ValueError(f"a rate is at least 0, below {_MAX_RATE} and has at most {PLACES} decimals")
    return value


def _series(value: str) -> str:
    if not _SERIES.fullmatch(value):
        raise ValueError('should be the name of a metric, optionally with matchers: name or name{job="x"}')
    return value


def _matchers(value: str) -> str:
    if value and not re.fullmatch(_MATCHERS, value):
        raise ValueError('should be label matchers without braces: job="kafka", env=~"prod.*"')
    return value


def _payer(value: str) -> str:
    if value == UNALLOCATED:
        raise ValueError(f"{UNALLOCATED} is reserved for cost without an identity")
    return value


def _divides_the_day(value: int) -> int:
    if SECONDS_OF_A_DAY % value:
        raise ValueError("costs are measured day by day: write a step that divides a day, such as 300, 900 or 3600")
    return value


#: Money per unit, written in quotes.
Rate = Annotated[ExactDecimal, AfterValidator(_rate)]
#: The name of a metric, optionally with label matchers: ``name`` or ``name{job="x"}``.
SeriesName = Annotated[str, StringConstraints(strip_whitespace=True), AfterValidator(_series)]
#: Label matchers without braces, or an empty text.
Matchers = Annotated[str, StringConstraints(strip_whitespace=True), AfterValidator(_matchers)]
#: PromQL of the user; ``{step}`` stands for the step.
Query = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=255)]
#: The names of measures.
NAME_PATTERN = r"^[a-z][a-z0-9_]{0,62}$"
#: A kind of topics: a value of a label of the metrics. It is part of the names of its measures.
Kind = Annotated[str, StringConstraints(pattern=NAME_PATTERN)]


class StaticIdentity(Settings):
    """An identity that is configured to pay."""

    identity_id: Annotated[Text, AfterValidator(_payer)]
    identity_type: IdentityType = "principal"
    display_name: Text | None = None
    team: Text | None = None


class IdentitySource(Settings):
    """The source of the identities.

    ``label`` is the label of the metrics that names an identity; None means the usual label of those metrics.
    ``principal_to_team`` describes an identity, it does not replace it.
    """

    source: Literal["prometheus", "static", "both"] = "prometheus"
    label: LabelName | None = None
    discovery_query: Query | None = None
    discovery_window_hours: Annotated[int, Field(ge=1, le=168)] = 1
    principal_to_team: dict[str, Text] = Field(default_factory=dict)
    default_team: Text = "UNASSIGNED"
    static_identities: tuple[StaticIdentity, ...] = ()

    @model_validator(mode="after")
    def _static_identities_fit(self) -> Self:
        ids = [each.identity_id for each in self.static_identities]
        if len(ids) != len(set(ids)):
            raise ValueError("an identity is listed twice in static_identities")
        if self.source == "static" and not ids:
            raise ValueError("static_identities required when the identity source is static")
        if self.source == "prometheus" and ids:
            raise ValueError("static_identities require the identity source static or both")
        return self

    @property
    def uses_metrics(self) -> bool:
        """Return whether the metrics source names identities."""
        return self.source != "static"

    def team_of(self, identity_id: str) -> str:
        """Return the team of an identity."""
        return self.principal_to_team.get(identity_id, self.default_team)


class ResourceSource(Settings):
    """The source of the lists of brokers and topics: the metrics, or the cluster itself (``admin_api``)."""

    source: Literal["prometheus", "admin_api"] = "prometheus"
    bootstrap_servers: Text | None = None
    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] | None = None
    sasl_username: Text | None = None
    sasl_password: SecretStr | None = None
    ssl_ca_location: LocalPath | None = None
    ssl_certificate_location: LocalPath | None = None
    ssl_key_location: LocalPath | None = None
    ssl_key_password: SecretStr | None = None

    @model_validator(mode="after")
    def _is_usable(self) -> Self:
        if self.source == "prometheus":
            return self
        if not self.bootstrap_servers:
            raise ValueError(
                "bootstrap servers required when resource source is the admin API: bootstrap_servers is missing"
            )
        uses_sasl = self.security_protocol.startswith("SASL_")
        if uses_sasl and not (self.sasl_mechanism and self.sasl_username and self.sasl_password):
            raise ValueError(f"sasl_mechanism, sasl_username and sasl_password required with {self.security_protocol}")
        if not uses_sasl and (self.sasl_mechanism or self.sasl_username or self.sasl_password):
            raise ValueError(
                f"the sasl_ keys have no effect with {self.security_protocol}; write SASL_PLAINTEXT or SASL_SSL"
            )
        if find_spec("confluent_kafka") is None:
            raise ValueError(f"the admin API needs the extra kafka: {how_to_install('kafka')}")
        return self


class ConstructedSettings(PluginSettings):
    """The keys of all ecosystems with constructed costs.

    ``cluster_id`` is the id of the resource that everything is billed for.
    """

    cluster_id: Text
    display_name: Text | None = None
    identity_source: IdentitySource = IdentitySource()

    @field_validator("metrics_step_seconds")
    @classmethod
    def _whole_steps(cls, value: int) -> int:
        return _divides_the_day(value)

    @property
    def identity_label(self) -> str:
        """The label that names an identity."""
        return self.identity_source.label or PRINCIPAL


def check_sources(settings: ConstructedSettings, measured: Iterable[str]) -> None:
    """Check that what comes from the metrics can come from there; ``measured`` names what is measured in addition to
    the identities.

    Raises:
        ValueError: a query or the metrics source is missing.
    """
    source = settings.identity_source
    if source.uses_metrics and source.discovery_query is None:
        raise ValueError(
            "discovery_query required when an identity source is the metrics source:"
            " identity_source.discovery_query is missing"
        )
    reasons = ["identity_source takes identities from it"] if source.uses_metrics else []
    reasons += [f"{name} is measured" for name in measured]
    if settings.metrics is None and reasons:
        raise ValueError(f"metrics required: {', '.join(reasons)}")


def check_known_measures(policies: dict[str, Any] | list[Any], known: frozenset[str]) -> None:
    """Check the measures that ``allocation_policies`` uses.

    Raises:
        ValueError: a policy names a measure that is not in ``known``.
    """
    if unknown := sorted(parse_policies(policies, "").measures - known):
        raise ValueError(f"no such measure: {', '.join(unknown)}; there are {', '.join(sorted(known))}")
