"""What changed is told in amounts, effects and a sentence."""

from __future__ import annotations

from decimal import Decimal

import pytest

from chargeback.model.effects import EFFECTS
from chargeback.service.changes import Change, together

NOTHING = dict.fromkeys(EFFECTS, Decimal(0))


def change(before: str, after: str, **effects: str) -> Change:
    """Return a change with some effects."""
    return Change((), Decimal(before), Decimal(after), NOTHING | {name: Decimal(a) for name, a in effects.items()})


@pytest.mark.parametrize(
    ("told", "sentence"),
    [
        (
            change("100", "512.1", quantity="380.02", price="32.08"),
            "+412.10 USD: +380.02 because larger quantities were billed, +32.08 because the same costs more.",
        ),
        (
            change("10", "5", share="-8", calendar="3.001", policy="-0.001"),
            "-5.00 USD: -8.00 because its part of the usage shrank, +3.00 because more days have costs.",
        ),
        (change("0", "0.0012", new="0.0012"), "+0.0012 USD because some of it was not billed before."),
        (
            change("5", "5", calendar="1", price="-1"),
            "+0.00 USD: +1.00 because more days have costs, -1.00 because the same costs less.",
        ),
        (change("5", "5"), "Nothing changed."),
    ],
)
def test_sentences(told: Change, sentence: str) -> None:
    """The largest effect comes first, and what is less than a cent only if there is nothing larger."""
    assert told.sentence("USD") == sentence


def test_several_together() -> None:
    """Amounts and effects of several changes are added up."""
    both = together([change("1", "2", price="1"), change("5", "3", price="-3", share="1")])
    assert both == change("6.000000000000", "5", price="-2", share="1")
    assert both.delta == Decimal("-1")
    assert together([]).effects == NOTHING


def test_per_day() -> None:
    """The amounts by the number of days with costs; none where there is no such day."""
    assert change("1", "2").per_day((3, 0)) == (Decimal("0.333333333333"), None)
