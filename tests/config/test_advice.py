"""Advice about configurations that are valid but probably not intended."""

from __future__ import annotations

import pytest

from chargeback.config.advice import advice_about
from tests.config.conftest import CLOUD, Load, tenant

EVEN = "{portions: [{share: '1', try: [even(active)]}]}"


def advice(load: Load, name: str) -> list[str]:
    """Return the advice about a policy for a product type."""
    return list(advice_about(load(tenant(plugin_settings=f"{{{CLOUD}, allocation_policies: {{{name}: {EVEN}}}}}"))))


@pytest.mark.parametrize("name", ["KAFKA_NUM_CKUS", "CONNECT_NUM_TASKS", '"KAFKA_*"', '"*"'])
def test_known_product_types(load: Load, name: str) -> None:
    """There is no advice about known product types, or about patterns of them."""
    assert advice(load, name) == []


def test_a_misspelt_product_type(load: Load) -> None:
    """A similar product type is suggested."""
    assert advice(load, "KAFKA_STORAG") == [
        "tenant acme: plugin_settings.allocation_policies has a policy for KAFKA_STORAG, a product type that "
        "is unknown to confluent_cloud; did you mean KAFKA_STORAGE?"
    ]


def test_a_new_product_type(load: Load) -> None:
    """A type that is not similar to any is called unknown."""
    assert advice(load, "QUANTUM")[0].endswith("it applies only to bills with lines of this type")


@pytest.mark.parametrize(
    ("access", "said"),
    [
        ("{mode: none}", None),
        ("{roles: [{groups: [a], allow: [read]}]}", "access.roles has no effect, because access.mode is none"),
        ("{mode: proxy, proxy: {trusted: [10.0.3.7]}}", "no one may see anything, because access.roles is empty"),
        ("{mode: proxy, proxy: {trusted: [10.0.3.7]}, roles: [{groups: [a], allow: [read]}]}", None),
    ],
)
def test_roles_without_effect(load: Load, access: str, said: str | None) -> None:
    """Roles have no effect while callers are not identified; without roles, identified callers may see nothing."""
    found = list(advice_about(load(f"access: {access}\n{tenant()}")))
    assert [sentence.startswith(said or "-") for sentence in found] == ([] if said is None else [True])


def test_no_policies(load: Load) -> None:
    """Without policies in the configuration there is no advice."""
    assert list(advice_about(load(tenant()))) == []
