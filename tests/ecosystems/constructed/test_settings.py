"""Settings that ecosystems with constructed costs share."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from chargeback.ecosystems.constructed.settings import (
    ConstructedSettings,
    IdentitySource,
    Matchers,
    Rate,
    SeriesName,
    check_known_measures,
)


@pytest.mark.parametrize("text", ["0", "0.0001", "12", "0.123456789012"])
def test_a_rate_is_the_very_decimal(text: str) -> None:
    """A rate in quotes is an exact decimal."""
    assert TypeAdapter(Rate).validate_python(text) == Decimal(text)


@pytest.mark.parametrize("value", [0.5, "-0.1", "0.1234567890123", "1e10", "NaN", "cheap", None, True])
def test_what_is_no_rate(value: object) -> None:
    """Floats and rates that are negative, infinite or too precise are errors."""
    with pytest.raises(ValidationError):
        TypeAdapter(Rate).validate_python(value)


@pytest.mark.parametrize(
    "text", ["bytes", " bytes_total ", "ns:bytes", 'bytes{job="a"}', 'bytes{job=~"a|b", x!="}"}', "bytes{}"]
)
def test_names_of_series(text: str) -> None:
    """A name, with or without matchers, is accepted, and white space around it is removed."""
    assert TypeAdapter(SeriesName).validate_python(text) == text.strip()


@pytest.mark.parametrize(
    "text", ["", "sum(x)", "bytes[5m]", "bytes{", "bytes{job=a}", 'by-tes{job="a"}', "bytes offset 1h"]
)
def test_what_is_no_name_of_a_series(text: str) -> None:
    """An expression is not accepted as a name."""
    with pytest.raises(ValidationError, match="should be the name of a metric"):
        TypeAdapter(SeriesName).validate_python(text)


def test_matchers_have_no_braces() -> None:
    """Matchers that apply to every metric are written without braces; braces are an error."""
    adapter: TypeAdapter[str] = TypeAdapter(Matchers)
    assert adapter.validate_python('job="kafka", env=~"prod.*"') == 'job="kafka", env=~"prod.*"'
    assert adapter.validate_python("") == ""
    with pytest.raises(ValidationError, match="without braces"):
        adapter.validate_python('{job="kafka"}')


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"source": "static"}, "static_identities required when the identity source is static"),
        ({"static_identities": [{"identity_id": "a"}]}, "require the identity source static or both"),
        ({"source": "both", "static_identities": [{"identity_id": "a"}] * 2}, "is listed twice"),
        (
            {"source": "both", "static_identities": [{"identity_id": "UNALLOCATED"}]},
            "reserved for cost without an identity",
        ),
        ({"source": "static", "static_identities": [{"identity_id": "a", "identity_type": "ghost"}]}, "principal"),
        ({"discovery_window_hours": 0}, "greater than or equal to 1"),
        ({"label": "not a label"}, "name of a label"),
    ],
)
def test_identity_sources_that_cannot_work(keys: dict[str, Any], message: str) -> None:
    """The error describes each mistake."""
    with pytest.raises(ValidationError, match=message):
        IdentitySource.model_validate(keys)


def test_teams() -> None:
    """An identity without a team belongs to the default one."""
    source = IdentitySource.model_validate({"principal_to_team": {"alice": "payments"}, "default_team": "platform"})
    assert (source.team_of("alice"), source.team_of("bob")) == ("payments", "platform")


@pytest.mark.parametrize(("step", "fits"), [(1, True), (300, True), (3600, True), (86400, True), (7000, False)])
def test_the_step_divides_the_day(step: int, fits: bool) -> None:
    """The step must divide a day, because costs are measured per day."""
    keys = {"cluster_id": "c", "metrics_step_seconds": step}
    if fits:
        assert ConstructedSettings.model_validate(keys).metrics_step_seconds == step
    else:
        with pytest.raises(ValidationError, match="divides a day"):
            ConstructedSettings.model_validate(keys)


def test_policies_ask_for_measures_that_exist() -> None:
    """A policy with an unknown measure is an error that lists the known ones."""
    policy = {"X": {"portions": [{"share": "1", "try": ["usage(bytes_in + typo)"]}]}}
    with pytest.raises(ValueError, match="no such measure: typo; there are bytes_in"):
        check_known_measures(policy, frozenset({"bytes_in"}))
