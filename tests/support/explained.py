"""An independent check of explanations: every amount follows from the answer alone.

This shares no code with the service. It knows the rules of decision 5: the largest remainder on integers of 10⁻¹², the
absolute value first, ties by ascending id; the line into portions, then the portion among identities.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any


def _split(units: int, weights: list[Fraction]) -> list[int]:
    """Split by largest remainder; equal remainders in the order given."""
    total = sum(weights)
    exact = [abs(units) * weight / total for weight in weights]
    shares = [share.numerator // share.denominator for share in exact]
    by_remainder = sorted(range(len(weights)), key=lambda n: (shares[n] - exact[n], n))
    for n in by_remainder[: abs(units) - sum(shares)]:
        shares[n] += 1
    return [-share if units < 0 else share for share in shares]


def derived_amount(answer: dict[str, Any]) -> Fraction:
    """Return what the identity is charged, from an explanation's JSON."""
    line, number = answer["line"], answer["portion"]["number"]
    shares = [Fraction(each["share"]) for each in answer["policy"]["portions"]]
    portion = _split(int(Fraction(line["total_cost"]) * 10**12), shares)[number - 1]
    assert Fraction(portion, 10**12) == Fraction(answer["portion"]["amount"])
    evidence, arithmetic = answer["evidence"], answer["arithmetic"]
    values = {each["identity_id"]: Fraction(each["value"] or 1) for each in (evidence or {}).get("contenders", ())}
    if answer["identity_id"] not in values:
        assert arithmetic is None
        return Fraction(0)
    mine = values[answer["identity_id"]]
    total = Fraction(evidence["total"] or evidence["contenders_total"])
    exact = abs(portion) * mine / total
    assert exact == Fraction(arithmetic["exact"])
    assert exact.numerator // exact.denominator == int(arithmetic["units_floor"])
    if len(values) == evidence["contenders_total"]:
        assert sum(values.values()) == total
        units = dict(zip(sorted(values), _split(portion, [values[each] for each in sorted(values)]), strict=True))
        return Fraction(units[answer["identity_id"]], 10**12)
    # Not all contenders are listed: of the remainders, the answer gives only the rank.
    assert arithmetic["extra_unit"] == (arithmetic["remainder_rank"] <= arithmetic["spare_units"])
    found = int(arithmetic["units_floor"]) + arithmetic["extra_unit"]
    return Fraction(-found if portion < 0 else found, 10**12)


def check_topic_explanation(answer: dict[str, Any]) -> Decimal:
    """Check the explanation of a topic row: a line that is attributed to topics as one portion, by name."""
    contenders = (answer["evidence"] or {}).get("contenders", ())
    named = [each | {"identity_id": each["topic_name"]} for each in contenders]
    return check_explanation(
        answer
        | {
            "identity_id": answer["topic_name"],
            "policy": {"portions": [{"share": "1"}]},
            "portion": {"number": 1, "amount": answer["line"]["total_cost"]},
            "evidence": answer["evidence"] and answer["evidence"] | {"contenders": named},
        }
    )


def check_explanation(answer: dict[str, Any]) -> Decimal:
    """Check that an answer agrees with itself, and return the amount."""
    amount = derived_amount(answer)
    told = answer["arithmetic"]["amount"] if answer["arithmetic"] else "0"
    assert amount == Fraction(told)
    return Decimal(told)
