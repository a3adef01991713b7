"""The journal of a month, and the templates that render it."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chargeback.config.journal import JournalProfile, JournalTemplate
from chargeback.errors import TemplateFailed
from chargeback.model.cents import rounded_cents, to_cents
from chargeback.model.money import from_units, total
from chargeback.reports.statements.content import (
    StatedAmount,
    StatementAnswer,
    StatementRanking,
    StatementRecipient,
    Statements,
    StatementSplit,
)
from chargeback.reports.statements.journal import CLEARING, EXPENSE, journal_csv, journal_of
from chargeback.reports.statements.journal_templates import journal_by_template
from tests.reports.statements import heading_of_october
from tests.support.laws import examples

PROFILE = JournalProfile(clearing_account="1590", expense_account="6999")
AMOUNTS = st.lists(st.integers(-(10**16), 10**16).map(from_units), max_size=12)


def statements(amounts: list[Decimal], currency: str = "USD") -> Statements:
    """Return statements of these amounts: the first has an account, the last is UNASSIGNED."""
    heading = heading_of_october(currency=currency, category_version=1)
    items = []
    for place, (amount, cents) in enumerate(zip(amounts, to_cents(amounts, currency), strict=True)):
        value = "UNASSIGNED" if place == len(amounts) - 1 else f"value-{place}"
        items.append(
            StatementAnswer(
                **dict(heading),
                number=f"CB-{value}-r2",
                supersedes=None,
                digest="digest",
                recipient=StatementRecipient(
                    value=value,
                    name="=Payments" if place == 0 else None,
                    path=[],
                    gl={"account": "54100", "cc": "7"} if place == 0 else {},
                    contacts=[],
                ),
                amount=amount,
                rounded=cents,
                lines=[],
                previous=None,
                identities=None,
                resources=StatementRanking(items=[], other=None, total=StatedAmount.alone(Decimal(0), currency)),
                bills=None,
                topics=None,
                unit_costs=[],
                split=StatementSplit(policies=[], rules=None, steps=None),
                verdict=None,
                replies=[],
                tie_out=None,
            )
        )
    return Statements(heading, items, StatedAmount.sum(items, currency), None)


@settings(max_examples=examples(100))
@given(AMOUNTS, st.sampled_from(["USD", "JPY", "KWD"]))
def test_debits_are_credits_and_the_cents_of_the_statements(amounts: list[Decimal], currency: str) -> None:
    """Every statement other than zero is one line of its cents, on the side of its sign; the clearing line has the
    rounded total of the month; no line is negative or zero, and the bytes are reproducible."""
    found = statements(amounts, currency)
    journal = journal_of(found, PROFILE)
    assert journal.debit == journal.credit
    expenses = [each for each in journal.lines if each.kind == EXPENSE]
    assert {each.statement: each.debit - each.credit for each in expenses} == {
        each.number: each.rounded for each in found.items if each.rounded
    }
    clearing = [each.credit - each.debit for each in journal.lines if each.kind == CLEARING]
    assert sum(clearing) == rounded_cents(total(amounts), currency)
    assert all(min(each.debit, each.credit) == 0 < max(each.debit, each.credit) for each in journal.lines)
    assert journal_csv(journal) == journal_csv(journal_of(found, PROFILE))
    written = journal.model_dump(mode="json")
    assert written["debit"] == written["credit"]


def test_accounts_come_from_the_register() -> None:
    """A value uses its own account or else the expense account; texts have the month and that it is provisional."""
    journal = journal_of(statements([Decimal(10), Decimal(-3), Decimal("0.001")]), PROFILE)
    assert [(each.account, str(each.debit), str(each.credit)) for each in journal.lines] == [
        ("54100", "10.00", "0.00"),
        ("6999", "0.00", "3.00"),
        ("1590", "0.00", "7.00"),
    ]
    assert journal.lines[0].text == "Kafka 2026-10: =Payments (PROVISIONAL)"
    assert journal.number == "CBJ-acme-2026-10-cost_center-r2"
    assert journal_of(statements([Decimal(1)]), replace(PROFILE, account_id="cc")).lines[0].account == "7"
    rows = list(csv.DictReader(io.StringIO(journal_csv(journal))))
    assert (rows[0]["name"], rows[0]["gl"]) == ("'=Payments", '{"account":"54100","cc":"7"}')
    assert (rows[-1]["kind"], rows[-1]["value"], rows[-1]["status"]) == ("clearing", "", "PROVISIONAL")


JOURNAL = journal_of(statements([Decimal("10.50"), Decimal(-3)]), PROFILE)


def written(source: str, form: str) -> str:
    """Return the output of a template."""
    return journal_by_template(JOURNAL, JournalTemplate("sap", form, source)).decode()


def test_templates_write_what_finance_wants() -> None:
    """Amounts are decimals, and every text is escaped for the output format."""
    assert (
        written(
            "{% for each in lines if each.value %}\n"
            "{{ each.account }},{{ each.name }},{{ each.debit - each.credit }},{{ '%.3f'|format(each.debit) }}\n"
            "{% endfor %}\n"
            "{{ debit }},{{ credit }},{{ status }}\n",
            "csv",
        )
        == '54100,"\'=Payments",10.50,10.500\r\n6999,,-3.00,0.000\r\n10.50,10.50,PROVISIONAL\r\n'
    )
    found = written(
        '{"n": {{ number }}, "names": [{% for each in lines %}{{ each.name }},{% endfor %}{{ debit }}]}', "json"
    )
    assert json.loads(found) == {"n": JOURNAL.number, "names": ["=Payments", None, None, "10.50"]}
    assert written("<t>{{ '<&' }}{{ lines[1].name }}</t>", "xml") == "<t>&lt;&amp;</t>"
    assert written("{{ 'a\\nb' }}{{ lines[1].name }}|\n", "txt") == "a b|\n"


@pytest.mark.extensive
@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("{% for %}", "line 1"),
        ("\n{{ nothing }}", "'nothing' is undefined, line 2"),
        ("{{ lines[0].debit / 0 }}", "DivisionByZero"),
        ("{{ ''.__class__.__mro__ }}", "unsafe"),
        ("{% include '/etc/passwd' %}", "no loader"),
        ("{{ lines.append(1) }}", "unsafe"),
        ("{% for a in range(90000) %}{{ 'x' * 9000 }}{% endfor %}", "writes more than 16 MiB"),
        ("{{ ('x' * 2000000000)|length }}", "512 MiB of memory"),
    ],
)
def test_templates_that_fail_say_why(source: str, told: str) -> None:
    """The error has the reason and the line; a template cannot reach anything that it is not given."""
    with pytest.raises(TemplateFailed) as failed:
        written(source, "txt")
    assert failed.value.message.startswith("the template sap: ")
    assert told in failed.value.message


@pytest.mark.drill
def test_templates_that_do_not_end_are_ended() -> None:
    """A template that does not end is stopped after some seconds of processor time."""
    with pytest.raises(TemplateFailed, match=r"the template sap (needs more than 5|was ended after 8) s"):
        written("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}", "txt")
