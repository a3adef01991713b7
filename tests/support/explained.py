"""An independent check of explanations: every amount follows from the response alone.

This shares no code with the service. It implements decision 5: the largest remainder on integers of 10⁻¹², the
absolute value first, ties by ascending id; the line into portions, then the portion among identities.
"""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction
from typing import Any


def _split(units: int, weights: list[Fraction]) -> list[int]:
    """Split by largest remainder; equal remainders are resolved in the given order."""
    total = sum(weights)
    exact = [abs(units) * weight / total for weight in weights]
    shares = [share.numerator // share.denominator for share in exact]
    by_remainder = sorted(range(len(weights)), key=lambda n: (shares[n] - exact[n], n))
    for n in by_remainder[: abs(units) - sum(shares)]:
        shares[n] += 1
    return [-share if units < 0 else share for share in shares]


def derived_amount(answer: dict[str, Any]) -> Fraction:
    """Return the identity's amount, derived from the JSON of an explanation."""
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
    # Not all contenders are listed: the response has only the rank of the remainder.
    assert arithmetic["extra_unit"] == (arithmetic["remainder_rank"] <= arithmetic["spare_units"])
    found = int(arithmetic["units_floor"]) + arithmetic["extra_unit"]
    return Fraction(-found if portion < 0 else found, 10**12)


def check_topic_explanation(answer: dict[str, Any]) -> Decimal:
    """Check the explanation of a topic row: a line that is attributed to topics by name, in one portion."""
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


_AMOUNT = r"(-?\d{1,3}(?:,\d{3})*\.\d\d+)"


def check_sentence(sentence: str, answer: dict[str, Any], names: dict[str, str]) -> None:
    """Check the numbers and claims of a sentence about an amount in the JSON of an explanation."""
    arithmetic, evidence = answer["arithmetic"], answer["evidence"]
    identity = names.get(answer["identity_id"], answer["identity_id"])
    if arithmetic is None:
        assert f"{identity} is charged nothing" in sentence, sentence
        return
    applied = next(each for each in answer["methods"] if each["applied"])
    split = re.search(
        rf"(?:([\d.]+) % of )?[Tt]he (\S+) line of {_AMOUNT} USD (.*): ({_AMOUNT} USD|nothing) for (.*)\.$", sentence
    )
    assert split, sentence
    share, _, cost, how, amount, _, payer = split.groups()
    assert payer == identity, sentence
    assert abs(Fraction(share or 100) / 100 - Fraction(answer["portion"]["share"])) < Fraction(1, 1000), sentence
    assert _is_rounded(cost, Fraction(answer["line"]["total_cost"])), sentence
    charged = Fraction(arithmetic["amount"])
    assert (amount == "nothing") == (charged == 0), sentence
    assert amount == "nothing" or _is_rounded(amount.removesuffix(" USD"), charged), sentence
    kind = applied["method"].partition("(")[0]
    words = {
        "usage": "follows ",
        "owner": "goes to the owner",
        "even": "is shared evenly",
        "unallocated": "stays unalloc",
    }
    assert how.startswith(words.get(kind, "follows what the other lines charge")), sentence
    # If another method came first, the sentence says why it did not apply.
    earlier = [each["why_not"] for each in answer["methods"] if each["position"] < applied["position"]]
    assert all(reason in sentence for reason in earlier), sentence
    if used := re.search(r"(?:wrote|read|used)[a-z ]* ([\d.,]+) of ([\d.,]+) ", sentence):
        mine = next(each for each in evidence["contenders"] if each["identity_id"] == answer["identity_id"])
        part, total = (Fraction(each.replace(",", "")) for each in used.groups())
        assert abs(part / (total or 1) - Fraction(mine["value"]) / Fraction(evidence["total"])) < Fraction(2, 100), (
            sentence
        )
    if among := re.search(r"was one of (\d+) ", sentence):
        assert int(among[1]) == evidence["contenders_total"] > 1, sentence
    if "the only" in sentence:
        assert evidence["contenders_total"] == 1, sentence


def check_topic_sentence(sentence: str, answer: dict[str, Any]) -> None:
    """Check the numbers and claims of a sentence about an amount in the explanation of a topic row."""
    arithmetic, evidence, name = answer["arithmetic"], answer["evidence"], answer["topic_name"]
    topic = "No topic" if name == "__UNATTRIBUTED__" else f"Topic {name}"
    assert sentence.startswith(f"{topic} "), sentence
    if arithmetic is None:
        assert sentence.startswith(f"{topic} has nothing of "), sentence
        assert sentence.endswith(f": {answer['why_nothing']}."), sentence
        return
    applied = next(each for each in answer["methods"] if each["applied"])
    split = re.search(rf"\. The (\S+) line of {_AMOUNT} USD (.*): ({_AMOUNT} USD|nothing) for (.*)\.$", sentence)
    assert split, sentence
    product, cost, how, amount, _, payer = split.groups()
    assert (product, payer) == (answer["line"]["product_type"], name), sentence
    assert _is_rounded(cost, Fraction(answer["line"]["total_cost"])), sentence
    charged = Fraction(arithmetic["amount"])
    assert (amount == "nothing") == (charged == 0), sentence
    assert amount == "nothing" or _is_rounded(amount.removesuffix(" USD"), charged), sentence
    kind = applied["method"].partition("(")[0]
    words = {"usage": "follows ", "even": "is shared evenly", "unattributed": "is attributed to no topic"}
    assert how.startswith(words[kind]), sentence
    # If another method came first, the sentence says why it did not apply.
    earlier = [each["why_not"] for each in answer["methods"] if each["position"] < applied["position"]]
    assert all(reason in sentence for reason in earlier), sentence
    used = re.match(rf"{re.escape(topic)} [a-z ]+ ([\d.,]+) of ([\d.,]+) ", sentence)
    among = re.match(rf"{re.escape(topic)} was one of (\d+) topics ", sentence)
    only = sentence.startswith(f"{topic} was the only topic ")
    assert (used is not None) == (kind == "usage"), sentence
    assert (among is not None or only) == (kind == "even"), sentence
    if used:
        mine = next(each for each in evidence["contenders"] if each["topic_name"] == name)
        part, total = (Fraction(each.replace(",", "")) for each in used.groups())
        assert abs(part / (total or 1) - Fraction(mine["value"]) / Fraction(evidence["total"])) < Fraction(2, 100), (
            sentence
        )
    if among:
        assert int(among[1]) == evidence["contenders_total"] > 1, sentence
    if only:
        assert evidence["contenders_total"] == 1, sentence


def _is_rounded(text: str, amount: Fraction) -> bool:
    places = len(text.partition(".")[2])
    return abs(Fraction(text.replace(",", "")) - amount) <= Fraction(1, 2) * Fraction(f"1e-{places}")


def check_explanation(answer: dict[str, Any]) -> Decimal:
    """Check that a response is consistent, and return the amount."""
    amount = derived_amount(answer)
    told = answer["arithmetic"]["amount"] if answer["arithmetic"] else "0"
    assert amount == Fraction(told)
    return Decimal(told)
