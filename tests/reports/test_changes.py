"""Changes: amounts, effects and a sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from random import Random

import pytest

from chargeback.model.effects import EFFECTS, BilledChange, BilledType, Quantity
from chargeback.model.money import from_units, total
from chargeback.reports.changes import Change, ChangedAmounts, ComparedGroup, ComparedPart, change_of, together
from chargeback.reports.wording import DisplayNames
from tests.support.change_sentences import BilledLine, BilledRange, ChangeReader

NAMES = DisplayNames({"sa-1": "payments", "sa-2": "webshop"}, {"lkc-1": "orders-prod"})
ONE = 10**12
PAYERS = ("sa-1", "sa-2", "sa-3", "UNALLOCATED")


def billed(
    cost: str, quantity: str | None = None, resource: str = "lkc-1", product: str = "WRITE", **shares: str
) -> BilledLine:
    """Return a line split by usage; webshop pays the rest."""
    mine = {f"sa-{name[2:]}": _units(amount) for name, amount in shares.items()}
    rest = _units(cost) - sum(mine.values())
    amount = None if quantity is None else _units(quantity)
    return BilledLine(resource, product, amount, "GB", "usage_ratio", "p", mine | ({"sa-2": rest} if rest else {}))


def _units(amount: str) -> int:
    return int(Decimal(amount) * ONE)


def group_of(before: BilledRange, after: BilledRange, payers: Sequence[str], *key: str) -> ComparedGroup:
    """Return the parts of two bills for some payers."""
    found = []
    for resource, product in sorted({(line.resource, line.product) for line in (*before.lines, *after.lines)}):
        (start, old), (end, new) = (_charged(each.of(resource, product), payers) for each in (before, after))
        if start or end:
            by_identity: Counter[str] = Counter()
            for sign, each in ((-1, before), (1, after)):
                for line in each.of(resource, product):
                    by_identity.update({p: sign * line.shares[p] for p in payers if p in line.shares})
            billed = BilledChange(old, new, (before.days, after.days))
            found.append(ComparedPart(resource, product, billed, start, end, by_identity))
    charged = (sum(sum(part.before.values()) for part in found), sum(sum(part.after.values()) for part in found))
    return ComparedGroup(key, 1, (from_units(charged[0]), from_units(charged[1])), found)


def _charged(lines: Sequence[BilledLine], payers: Sequence[str]) -> tuple[dict[str, int], BilledType | None]:
    amounts: Counter[str] = Counter()
    costs: Counter[str] = Counter()
    for line in lines:
        costs[line.method] += line.cost
        if mine := [line.shares[payer] for payer in payers if payer in line.shares]:
            amounts[line.method] += sum(mine)
    if not lines:
        return {}, None
    quantities = [line.quantity for line in lines]
    known = all(each is not None for each in quantities) and len({line.unit for line in lines}) == 1
    quantity = Quantity(sum(each or 0 for each in quantities), lines[0].unit) if known else None
    policies = frozenset(line.policy for line in lines)
    has_refunds = min(line.cost for line in lines) < 0 < max(line.cost for line in lines)
    return amounts, BilledType(costs, quantity, policies, has_refunds)


def change(before: BilledRange, after: BilledRange, payer: str = "sa-1") -> Change:
    """Return the change for one payer."""
    return change_of(group_of(before, after, [payer], payer))


def sentence(before: list[BilledLine], after: list[BilledLine], days: tuple[int, int] = (1, 1)) -> str:
    """Return the sentence of the change for all identities together."""
    ranges = BilledRange(days[0], before), BilledRange(days[1], after)
    return change_of(group_of(*ranges, PAYERS)).sentence("USD", NAMES)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (
            [billed("2000", "20", sa1="1500")],
            [billed("3000", "30", sa1="2250")],
            "+1,000.00 USD because larger quantities of WRITE on orders-prod were billed, for which payments pays "
            "750.00 more.",
        ),
        (
            [billed("-100", "10", sa1="-100")],
            [billed("-50", "5", sa1="-50")],
            "+50.00 USD because smaller quantities of WRITE on orders-prod were credited, for which payments pays "
            "50.00 more.",
        ),
        (
            [billed("-100", "10", sa1="-100")],
            [billed("-150", "10", sa1="-150")],
            "-50.00 USD because the credit for a unit of WRITE on orders-prod rose, for which payments pays "
            "50.00 less.",
        ),
        (
            [billed("10.02", "2", sa1="10.02")],
            [billed("9.98", "2", sa1="9.98")],
            "-0.04 USD because the price of WRITE on orders-prod fell, for which payments pays 0.04 less.",
        ),
        (
            [billed("10", sa1="10")],
            [billed("4", sa1="4")],
            "-6.00 USD because less was billed for WRITE on orders-prod, for which payments pays 6.00 less.",
        ),
        (
            [billed("400080", "4", sa1="400080"), billed("-400070", "4", sa1="-400070")],
            [billed("130", "2", sa1="130")],
            "+120.00 USD because WRITE on orders-prod has charges and refunds, which offset each other, for which "
            "payments pays 120.00 more.",
        ),
        (
            [billed("10", "1", sa1="10"), billed("5", "1", "lkc-2", sa2="5")],
            [billed("30", "3", sa1="30"), billed("10", "2", "lkc-2", sa2="10")],
            "+25.00 USD above all because larger quantities of WRITE on orders-prod were billed, for which payments "
            "pays 20.00 more (+20.00).",
        ),
        (
            [],
            [billed("0.0012", sa1="0.0012")],
            "+0.0012 USD because nothing was charged for WRITE on orders-prod before.",
        ),
        ([billed("5", "1")], [billed("5", "1")], "Nothing changed."),
    ],
)
def test_sentences(before: list[BilledLine], after: list[BilledLine], expected: str) -> None:
    """The reason follows from days, quantities, prices and shares, also for refunds; it has the product and the
    identity that pays most."""
    assert sentence(before, after) == expected


def test_several_reasons() -> None:
    """The largest effect comes first, and effects below a cent are omitted; the identity need not be named."""
    before = BilledRange(2, [billed("100", "20", sa1="50")])
    after = BilledRange(3, [billed("240", "40", sa1="144")])
    found = change_of(group_of(before, after, ["sa-1"], "sa-1"), "sa-1")
    assert [each.by_identity for each in found.reasons] == [{"sa-1": 94 * ONE}] * 4
    assert found.sentence("USD", NAMES) == (
        "+94.00 USD: +25.00 because more days have costs; +25.00 because larger quantities of WRITE on orders-prod "
        "were billed per day; +24.00 because its share of the usage for WRITE on orders-prod grew; +20.00 because the "
        "price of WRITE on orders-prod rose."
    )


def test_shares_that_move_from_one_to_another() -> None:
    """Shares that move between identities cancel in the total, but not for each identity."""
    before, after = BilledRange(1, [billed("100", sa1="60")]), BilledRange(1, [billed("100", sa1="70")])
    each = [change(before, after, payer) for payer in ("sa-1", "sa-2")]
    assert together(each).sentence("USD", NAMES) == "Nothing changed."
    assert [one.effects["share"] for one in each] == [Decimal(10), Decimal(-10)]
    assert "its share of the usage for WRITE on orders-prod shrank" in each[1].sentence("USD", NAMES)


@pytest.mark.parametrize("cases", [50, pytest.param(20_000, marks=pytest.mark.drill)])
def test_a_sentence_is_true(cases: int) -> None:
    """An independent reader finds every amount and direction of a sentence in the bills: with charges, refunds and free
    lines, for one payer and for several."""
    random, kinds = Random(7), Counter[str]()
    for _ in range(cases):
        before, after = _random_range(random), _random_range(random)
        items = [change(before, after, payer) for payer in PAYERS]
        some = random.sample(PAYERS, random.randint(1, len(PAYERS)))
        for payers, found in [
            *(([payer], item) for payer, item in zip(PAYERS, items, strict=True)),
            (some, change_of(group_of(before, after, some))),
            (PAYERS, together(items)),
        ]:
            assert total(found.effects.values()) == found.delta
            reader = ChangeReader(before, after, payers, {"orders-prod": "lkc-1"})
            kinds.update(
                reader.check(found.sentence("USD", DisplayNames({}, NAMES.resources)), found.delta, found.effects)
            )
    assert set(kinds) >= {*EFFECTS, "cost", "usage_ratio"} - {"share", "ownership"}


def _random_range(random: Random) -> BilledRange:
    """Return a few random lines: mostly charges, some refunds, some both; prices, quantities and splits vary."""
    lines = []
    for resource, product in random.sample([("lkc-1", "WRITE"), ("lkc-1", "CKU"), ("lkc-2", "WRITE")], 2):
        sign = random.choice([1, 1, 1, -1])
        for _ in range(random.choice([0, 1, 1, 2])):
            cost = random.choice([1, random.randint(0, 10**4), random.randint(0, 10**7)]) * random.choice(
                [10**10, 10**9]
            )
            cost *= random.choice([sign, sign, sign, sign, sign, -sign, 0])
            method = random.choice(["usage_ratio", "usage_ratio", "usage_ratio", "even_split", "terminal"])
            payers = ["UNALLOCATED"] if method == "terminal" else random.sample(PAYERS[:3], random.randint(1, 3))
            parts = [random.randint(0, 10) for _ in payers] if method == "usage_ratio" else [1 for _ in payers]
            shares = {
                payer: int(Fraction(cost * part, sum(parts) or 1)) for payer, part in zip(payers, parts, strict=True)
            }
            shares[payers[0]] += cost - sum(shares.values())
            quantity = random.choice([None, *(random.randint(1, 50) * ONE for _ in range(4))])
            policy = random.choice(["p", "p", "p", "q"])
            lines.append(BilledLine(resource, product, quantity, "GB", method, policy, shares))
    return BilledRange(random.randint(1, 4), lines)


def test_digits_below_the_units_have_no_reason() -> None:
    """Reallocated costs that differ by less than 10⁻¹² have an effect, so that effects sum to the difference, but no
    sentence."""
    found = change_of(ComparedGroup(("a",), 1, (Decimal(1), Decimal(1) + Decimal("1e-20")), []))
    assert total(found.effects.values()) == found.delta == Decimal("1e-20")
    assert found.sentence("USD", NAMES) == "Nothing changed."


def test_per_day() -> None:
    """Daily amounts are divided by the number of days with costs, and None if there is no such day."""
    found = change(BilledRange(3, [billed("1", sa1="1")]), BilledRange(0, []))
    told = ChangedAmounts.of(found, (3, 0), "USD", NAMES)
    assert (told.per_day_before, told.per_day_after) == (Decimal("0.333333333333"), None)
    assert together([]).effects == dict.fromkeys(EFFECTS, Decimal(0))
