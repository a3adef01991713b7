"""Messages when the official validator has unexpected findings."""

from __future__ import annotations

from conformance.expected import AS_EXPORTED, WITH_CHARGE_CLASS, differences, unseen


def test_a_rule_that_begins_or_ceases_to_fail_is_named() -> None:
    """Rules that newly fail or newly pass are reported as differences; equal sets of rules have none."""
    found = AS_EXPORTED - {"InvoiceId-C-005-C"} | {"ListCost-C-001-M"}
    assert differences(found, AS_EXPORTED) == [
        "fails, and should not: ListCost-C-001-M",
        "passes, and is expected to fail: InvoiceId-C-005-C",
    ]
    assert differences(WITH_CHARGE_CLASS, WITH_CHARGE_CLASS) == []


def test_a_broken_column_must_be_found_by_a_rule_of_its_own() -> None:
    """A rule that fails anyway, or a rule of another column, does not count as finding the broken column."""
    broken = {"ListCost": "0", "InvoiceId": "''"}
    found = AS_EXPORTED | {"ListCost-C-009-C", "ListUnitPrice-C-001-M"}
    assert unseen(found, AS_EXPORTED, broken) == ["no rule has found that InvoiceId is broken"]
    assert unseen(found, AS_EXPORTED, ["List"]) == ["no rule has found that List is broken"]
