"""Laws of statements, on random months with split and reallocated cost categories, tags, credits and refunds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chargeback.access.scope import RowScope
from chargeback.config.journal import JournalProfile
from chargeback.model.cents import rounded_cents
from chargeback.model.days import month_of
from chargeback.model.money import difference, from_units, total
from chargeback.reports.statements.compile import compile_statements
from chargeback.reports.statements.content import (
    DIRECT,
    SHARED_IN,
    SHARED_OUT,
    StatedAmount,
    StatementAnswer,
    StatementRanking,
    Statements,
)
from chargeback.reports.statements.journal import journal_of
from chargeback.reports.tenant_view import TenantView
from chargeback.store.facts.tables import FactTables
from chargeback.store.queries.datasets import CHARGEBACKS
from chargeback.store.queries.selection import Selection
from chargeback.store.queries.sums import sums_by
from chargeback.store.tenant import TenantStore
from tests.support.days import set_chargebacks
from tests.support.facts import new_facts, tenant_store
from tests.support.laws import examples
from tests.support.readers import Ask, ask, engine
from tests.support.scopes import SCOPES, ScopedWorld, worlds

__all__ = ["ask", "engine"]

MARCH, APRIL = date(2026, 3, 1), date(2026, 4, 30)
BY: Final = st.sampled_from(["identity_id", "tag:team", "tag:cost", "category:team", "category:area"])


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TenantStore]:
    """Yield a tenant whose control database has all days of the months as calculated, and nothing else."""
    with tenant_store(tmp_path_factory.mktemp("statements")) as store:
        with store.control.write() as connection:
            for day in (*month_of(MARCH), *month_of(APRIL)):
                set_chargebacks(connection, day, revision=1)
        yield store


class Compiler:
    """Writes each world once, and compiles statements from it."""

    def __init__(self, store: TenantStore, ask: Ask, new_folder: Callable[[], Path]) -> None:
        self._store = store
        self._ask = ask
        self._new_folder = new_folder
        self._written: list[tuple[ScopedWorld, FactTables]] = []

    def facts(self, world: ScopedWorld) -> FactTables:
        """Return the tables of a world."""
        for known, facts in self._written:
            if known is world:
                return facts
        facts = new_facts(self._new_folder() / "facts")
        world.write(facts)
        self._written.append((world, facts))
        return facts

    def __call__(self, world: ScopedWorld, by: str, month: date = MARCH, scope: RowScope | None = None) -> Statements:
        """Return the statements of a month, for a reader with or without a scope."""
        facts = self.facts(world)
        own = replace(self._store, facts=facts)
        tenant = TenantView("acme", "t", "eco", 30, own, topic_attribution_status="enabled")
        found: Statements = self._ask(
            lambda cursor: compile_statements(tenant, world.reader(cursor, facts, scope), month, by)
        )
        return found


@pytest.fixture
def compiled(tmp_path_factory: pytest.TempPathFactory, store: TenantStore, ask: Ask) -> Compiler:
    """Return a compiler for random worlds."""
    return Compiler(store, ask, lambda: tmp_path_factory.mktemp("law"))


def check_sum(parts: Sequence[Any], whole: Any) -> None:
    """Check that parts sum to their whole, exactly and in cents, each less than a cent from its exact amount."""
    assert total(part.amount for part in parts) == whole.amount
    assert total(part.rounded for part in parts) == whole.rounded
    assert all(abs(difference(part.amount, part.rounded)) < Decimal("0.01") for part in [*parts, whole])


def check_ranking(ranking: StatementRanking) -> None:
    """Check that the named parts and the others add up."""
    check_sum([*ranking.items, *([ranking.other] if ranking.other else [])], ranking.total)
    assert len({(each.id, each.within) for each in ranking.items}) == len(ranking.items)


def check_statement(statement: StatementAnswer) -> None:
    """Check that lines, largest parts and effects add up."""
    check_sum(statement.lines, statement)
    for ranking in (statement.identities, statement.resources, statement.topics, statement.bills):
        if ranking is not None:
            check_ranking(ranking)
    if statement.bills is not None:
        assert statement.bills.total == statement.resources.total
    assert statement.resources.total == StatedAmount(amount=statement.amount, rounded=statement.rounded)
    if statement.previous is not None:
        assert total(amount for _, amount in statement.previous.effects) == statement.previous.delta
        assert difference(statement.amount, statement.previous.amount) == statement.previous.delta
    kinds = {line.kind for line in statement.lines}
    assert kinds <= {DIRECT, SHARED_IN, SHARED_OUT}
    if statement.split.rules is not None:
        direct = total(line.amount for line in statement.lines if line.kind == DIRECT)
        assert total(rule.amount for rule in statement.split.rules) == direct
        assert bool(statement.split.steps) == bool(kinds - {DIRECT})


@settings(max_examples=examples(8))
@given(worlds(handing_on=True), BY)
def test_statements_are_the_bill(compiled: Compiler, world: ScopedWorld, by: str) -> None:
    """Statements sum to the bill, exactly and in cents; lines sum to their statement; each value has one statement."""
    found = compiled(world, by)
    whole = total(from_units(row.units) for row in world.charges)
    check_sum(found.items, found.total)
    assert found.total == StatedAmount.alone(whole, "USD")
    assert len({each.recipient.value for each in found.items}) == len(found.items)
    assert len({each.number for each in found.items}) == len(found.items)
    for statement in found.items:
        check_statement(statement)
        assert found.find(statement.recipient.value) is statement
    assert found.tie_out is not None
    assert found.tie_out.statements == found.total
    assert compiled(world, by) == found
    journal = journal_of(found, JournalProfile())
    assert journal.debit == journal.credit
    booked = {each.statement: difference(each.debit, each.credit) for each in journal.lines if each.statement}
    assert booked == {each.number: each.rounded for each in found.items if each.rounded}
    assert total(booked.values()) == rounded_cents(whole, "USD")


@settings(max_examples=examples(4))
@given(worlds(handing_on=True), BY)
def test_what_has_gone_is_stated(compiled: Compiler, world: ScopedWorld, by: str) -> None:
    """In the next month, every value has a statement of zero, compared with its previous cost."""
    march, april = compiled(world, by), compiled(world, by, APRIL)
    assert april.total == StatedAmount(amount=Decimal(0), rounded=Decimal(0))
    before = {each.recipient.value: each.amount for each in march.items}
    assert {each.recipient.value: each.previous and each.previous.amount for each in april.items} == before
    assert all(not each.lines for each in april.items)


@settings(max_examples=examples(8))
@given(worlds(handing_on=True), BY, SCOPES)
def test_a_scope_sees_its_part(compiled: Compiler, ask: Ask, world: ScopedWorld, by: str, scope: RowScope) -> None:
    """Statements have only visible rows, without the bill, rules and steps. A statement whose rows are all visible is
    unchanged."""
    whole, mine = compiled(world, by), compiled(world, by, scope=scope)
    assert (mine.tie_out, mine.heading.scope) == (None, scope.as_json())
    for statement in mine.items:
        check_statement(statement)
        assert (statement.split.rules, statement.split.steps) == (None, None)
        other = whole.find(statement.recipient.value)
        assert other is not None
        if [(line.kind, line.product_type, line.amount) for line in statement.lines] == [
            (line.kind, line.product_type, line.amount) for line in other.lines
        ]:
            assert (statement.amount, statement.rounded, statement.lines) == (other.amount, other.rounded, other.lines)
            assert statement.replies == []
        else:
            assert statement.replies is None

    facts, days = compiled.facts(world), Selection.of_days(month_of(MARCH))
    visible = ask(lambda cursor: sums_by(world.reader(cursor, facts, scope), CHARGEBACKS, days, (by,)))
    assert mine.total.amount == total(visible.values())
