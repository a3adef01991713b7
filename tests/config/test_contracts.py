"""Contracts in the configuration, and their mistakes."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from chargeback.config.contracts import ContractSettings, check_distinct

GOOD: dict[str, Any] = {
    **{"id": "main", "issuer": "Provider", "start_date": "2026-01-01", "end_date": "2026-12-31"},
    "commitments": [{"id": "all", "amount": "1000", "interval": "monthly"}],
}


def test_a_contract_is_read() -> None:
    """Missing keys have their defaults."""
    (found,) = ContractSettings.model_validate(GOOD).committed
    assert (found.contract, found.kind, found.counts, found.rollover, len(found.intervals)) == (
        *("main", "spend", "billed", False),
        12,
    )


@pytest.mark.parametrize(
    ("commitment", "said"),
    [
        ({"kind": "usage", "unit": "GB"}, "a commitment of usage has quantity, and no amount"),
        ({"amount": None}, "a commitment of spend has amount, and no quantity"),
        ({"unit": "GB"}, "the unit belongs to a commitment of usage"),
        ({"kind": "usage", "amount": None, "quantity": "5"}, "the unit belongs to a commitment of usage"),
        ({"amount": "0"}, "greater than 0"),
        ({"interval": "weekly"}, "'monthly', 'quarterly', 'annual' or 'term'"),
        ({"applies_to": {"tag:team": ["a"]}}, "product_category"),
    ],
)
def test_a_commitment_that_cannot_be(commitment: dict[str, Any], said: str) -> None:
    """Each invalid commitment has its message."""
    with pytest.raises(ValidationError, match=said):
        ContractSettings.model_validate(GOOD | {"commitments": [GOOD["commitments"][0] | commitment]})


def test_a_contract_that_cannot_be() -> None:
    """A contract must not end before it begins, and ids of commitments and contracts must be unique."""
    with pytest.raises(ValidationError, match="end_date should not be before start_date"):
        ContractSettings.model_validate(GOOD | {"end_date": "2025-12-31"})
    with pytest.raises(ValidationError, match="two commitments have the id all"):
        ContractSettings.model_validate(GOOD | {"commitments": GOOD["commitments"] * 2})
    with pytest.raises(ValueError, match="two contracts have the id a"):
        check_distinct("contracts", ["a", "b", "a"])
