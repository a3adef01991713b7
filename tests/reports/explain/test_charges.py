"""Explanations as responses: amounts that follow from the response alone, and sentences."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from decimal import Decimal

import pytest
from hypothesis import given, settings

from chargeback.allocation.day import Evidence
from chargeback.allocation.explain import explain_line
from chargeback.allocation.policies import UNKNOWN
from chargeback.model.money import total
from chargeback.recompute.explain import ExplainKey, Explanation
from chargeback.recompute.rules import AppliedPolicy
from chargeback.recompute.stored_day import LineRows
from chargeback.reports.explain.charges import explained_charge
from chargeback.reports.explain.sentence import sentence
from chargeback.reports.wording import DisplayNames
from chargeback.store.queries.paging import Page
from tests.allocation.bills import POLICIES, calculate
from tests.allocation.days import evidence, random_days
from tests.support.explained import check_explanation, check_sentence
from tests.support.laws import examples

NAMES = DisplayNames({"sa-1": "sa-pay"}, {"lkc-1": "orders-prod"})
#: How many rows of a random day are explained, at most.
SAMPLED = 60


#: The number of random days per batch, the most identities of a day, and the fewest rows to explain: 20,000 in
#: total in one drill and seven night runs.
SOME, MANY = (60, 40, 200), (600, 5000, 2_500)
DRILL = [pytest.mark.drill, pytest.mark.timeout(1800)]
NIGHT = [*DRILL, pytest.mark.night]


@pytest.mark.parametrize(
    ("days", "people", "least"),
    [SOME, *(pytest.param(*MANY, marks=NIGHT if n else DRILL, id=f"drill {n}") for n in range(8))],
)
def test_amounts_follow_from_the_answers_alone(days: int, people: int, least: int) -> None:
    """For rows of random days, an independent checker derives the stored amount from the explanation's JSON, and
    verifies the numbers and claims of the sentence."""
    checked = 0

    @settings(max_examples=examples(days))
    @given(random_days(people))
    def check(day: Evidence) -> None:
        nonlocal checked
        rows = calculate(day).rows.select(["line_id", "identity_id", "portion", "amount"]).to_pylist()
        for row in rows[:: max(1, len(rows) // SAMPLED)]:
            told = explanation(day, row["identity_id"], row["portion"], row["line_id"])
            for page in (Page(1, 2), Page(0, 1000)):
                answer = explained_charge(told, NAMES, "USD", page).model_dump(mode="json")
                assert check_explanation(answer) == row["amount"]
            check_sentence(answer["sentence"], answer, dict(NAMES.identities))
            checked += 1

    while checked < examples(least):
        check()


def explanation(day: Evidence, identity_id: str, portion: int | None = None, line_id: str | None = None) -> Explanation:
    """Return the explanation of a line of a day, by default the first one, as if it were stored."""
    line = next(each for each in day.billing.to_pylist() if line_id in {None, each["line_id"]})
    found = explain_line(day, POLICIES, line["line_id"], identity_id, portion, NAMES.resources.get(line["resource_id"]))
    policy = POLICIES.get(line["product_type"])
    applied = AppliedPolicy(
        line["product_type"], policy or UNKNOWN, "shipped", None if policy is None else line["product_type"]
    )
    key = ExplainKey(date(2026, 11, 4), line["line_id"], identity_id, portion)
    siblings = LineRows(1, line["total_cost"], equals_line=True)
    return Explanation(
        key=key,
        row=None,
        line=line,
        billed=line,
        policy=applied,
        portion=found,
        missing=None,
        siblings=siblings,
        revision=1,
        revisions=(),
        is_same=True,
    )


GB = 10**9


@pytest.mark.parametrize(
    ("day", "identity_id", "portion", "expected"),
    [
        (
            evidence("lkc-1 CKU 120", f"bytes_in lkc-1 sa-1 {123 * GB // 10} \n bytes_in lkc-1 sa-2 {333 * GB // 10}"),
            "sa-1",
            1,
            "sa-pay wrote and read 12.3 of 45.6 GB on orders-prod on 4 November 2026. "
            "70 % of the CKU line of 120.00 USD follows bytes: 22.66 USD for sa-pay.",
        ),
        (
            evidence("lkc-1 WRITE 0.0000031", "bytes_in lkc-1 sa-1 1 \n bytes_in lkc-1 sa-2 2"),
            "sa-1",
            None,
            "sa-pay wrote 1 of 3 bytes on orders-prod on 4 November 2026. "
            "The WRITE line of 0.0000031 USD follows written bytes: 0.0000010 USD for sa-pay.",
        ),
        (
            evidence("p FLINK 2", "cfu p sa-1 1 \n cfu p UNALLOCATED 3"),
            "UNALLOCATED",
            None,
            "Users without a known owner used 3 of 4 CFU on p on 4 November 2026. "
            "The FLINK line of 2.00 USD follows CFU: 1.50 USD for UNALLOCATED.",
        ),
        (
            evidence("lkc-1 BASE 6", "", "lkc-1 active sa-1 sa-2 sa-3"),
            "sa-1",
            None,
            "sa-pay was one of 3 identities active on orders-prod on 4 November 2026. "
            "The BASE line of 6.00 USD is shared evenly: 2.00 USD for sa-pay.",
        ),
        (
            evidence("lkc-1 WRITE 6", "", "lkc-1 active sa-1 sa-2"),
            "sa-1",
            None,
            "sa-pay was one of 2 identities active on orders-prod on 4 November 2026. The WRITE line of 6.00 USD is "
            "shared evenly because no written bytes were measured on orders-prod on this day: 3.00 USD for sa-pay.",
        ),
        (
            evidence("lkc-1 WRITE 6000", "bytes_in lkc-1 sa-1 0", "* period sa-1 sa-2", metrics=False),
            "sa-1",
            None,
            "sa-pay was one of 2 active identities on 4 November 2026. The WRITE line of 6,000.00 USD is shared evenly "
            "because the metrics source did not answer, so no written bytes were measured, and no identity was active "
            "on orders-prod on this day: 3,000.00 USD for sa-pay.",
        ),
        (
            evidence("lkc-1 WRITE 6", "bytes_in lkc-1 sa-2 1"),
            "sa-1",
            None,
            "sa-pay is charged nothing for orders-prod on 4 November 2026: no written bytes of it were measured on "
            "orders-prod. The WRITE line of 6.00 USD follows written bytes: nothing for sa-pay.",
        ),
        (
            evidence("lkc-1 CONNECT 6", "", "lkc-1 owner sa-1"),
            "sa-1",
            None,
            "sa-pay owned orders-prod on 4 November 2026. "
            "The CONNECT line of 6.00 USD goes to the owner: 6.00 USD for sa-pay.",
        ),
        (
            evidence("lkc-1 CONNECT 6", "", "lkc-1 owner sa-2"),
            "sa-1",
            None,
            "sa-pay is charged nothing for orders-prod on 4 November 2026: it did not own orders-prod. "
            "The CONNECT line of 6.00 USD goes to the owner: nothing for sa-pay.",
        ),
        (
            evidence("lkc-1 BASE 6"),
            "UNALLOCATED",
            None,
            "No identity could be charged for orders-prod on 4 November 2026: no identity was active on "
            "orders-prod on this day; no identity was active on any resource on this day. "
            "The BASE line of 6.00 USD stays unallocated: 6.00 USD for UNALLOCATED.",
        ),
        (
            evidence("lkc-1 NEWS 6"),
            "UNALLOCATED",
            None,
            "No identity could be charged for orders-prod on 4 November 2026: no policy is known for NEWS. "
            "The NEWS line of 6.00 USD stays unallocated: 6.00 USD for UNALLOCATED.",
        ),
        (
            evidence("lkc-1 BASE 0"),
            "sa-1",
            None,
            "sa-pay is charged nothing for orders-prod on 4 November 2026, because the line costs nothing.",
        ),
    ],
)
def test_sentences(day: Evidence, identity_id: str, portion: int | None, expected: str) -> None:
    """Each method has a sentence with rounded amounts, for readers who do not know the service."""
    assert sentence(explanation(day, identity_id, portion), NAMES, "USD") == expected


def test_the_sentence_of_a_proportional_line() -> None:
    """The sentence of a proportional line has the sum of the other lines."""
    day = evidence("a SUPPORT 8 \n lkc-1 BASE 6 \n lkc-2 BASE 2", "", "lkc-1 active sa-1 \n lkc-2 active sa-2")
    assert sentence(explanation(day, "sa-1"), NAMES, "USD") == (
        "sa-pay was charged 6.00 of 8.00 USD for other lines on 4 November 2026. "
        "The SUPPORT line of 8.00 USD follows what the other lines charge: 6.00 USD for sa-pay."
    )


def test_without_evidence_nothing_is_guessed() -> None:
    """Without evidence, the explanation has the stored amount and the reason; all parts of the calculation are null."""
    found = explanation(evidence("lkc-1 BASE 6", "", "lkc-1 active sa-1"), "sa-1")
    lost = replace(found, portion=None, missing="the measured usage of that day cannot be read", is_same=None)
    shown = explained_charge(lost, NAMES, "USD")
    assert shown.sentence == (
        "sa-pay is charged nothing of the BASE line of orders-prod on 4 November 2026. "
        "How is not known: the measured usage of that day cannot be read."
    )
    assert [shown.evidence, shown.portion, shown.arithmetic, shown.recomputed] == [None] * 4
    assert shown.evidence_missing == "the measured usage of that day cannot be read"


def test_portions_of_an_identity_sum_to_its_rows() -> None:
    """The amounts of the portions of an identity, explained one by one, sum to its rows."""
    day = evidence("lkc-1 CKU 10", "bytes_in lkc-1 sa-1 1", "lkc-1 active sa-1 sa-2")
    parts = [explain_line(day, POLICIES, day.billing["line_id"][0].as_py(), "sa-1", number) for number in (1, 2)]
    assert total(each.arithmetic.amount for each in parts if each.arithmetic) == Decimal("8.5")
