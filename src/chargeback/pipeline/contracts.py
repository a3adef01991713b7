"""Contracts in a run: a commitment that is used up, that will not be, or that ends soon is told once, and what is left
of an interval at its end is posted as adjustments, where the contract says who pays for it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from typing import Any, Final

from chargeback.allocation.split import split_exactly
from chargeback.config.contracts import ContractSettings, ShortfallSettings
from chargeback.model.accounting import AccountingPeriod
from chargeback.model.cents import minor_places, rounded_cents
from chargeback.model.days import ONE_DAY, DayRange
from chargeback.model.money import PLACES, difference, from_units, to_units
from chargeback.pipeline.look import Look
from chargeback.reports.closing.adjusting import adjust
from chargeback.reports.contracts import CommitmentInterval, CommitmentItem, Standing
from chargeback.store.control.adjustments import NewAdjustment, read_adjustments
from chargeback.store.control.catalogue import contracts_revision, save_contracts_revision
from chargeback.store.control.closings import read_books
from chargeback.store.control.events import CONTRACT_ENDING, CONTRACT_EXHAUSTED, CONTRACT_PACE, Event
from chargeback.store.queries.datasets import CHARGEBACKS
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.selection import Selection
from chargeback.store.queries.sums import sums_by

#: How long before its end it is told that a contract ends.
_SOON: Final = timedelta(days=60)
#: Below which part of the usual pace, and after which part of an interval, it is told that something will be left.
_SLOW: Final = 0.9
#: Who posts what is left.
_POSTS: Final = "contract"
_ENOUGH: Final = 0.5


def tell_contracts(look: Look) -> None:
    """Record the events of contracts, if the facts have changed since the last look.

    Raises:
        LeaseLost: another process has taken over.
        StorageError: the facts cannot be read.
    """
    run, settings = look.run, look.run.tenant.settings
    if not settings.contracts or not look.calculated:
        return
    events = [each for contract in settings.contracts for each in _ending(look, contract)]
    with run.store.control.read() as connection:
        is_known = contracts_revision(connection) == look.revision
    if not is_known:
        with look.reader() as reader:
            standing = Standing.of(reader, look.states, settings.contracts, run.today)
            for contract in settings.contracts:
                item = standing.item(contract, settings.currency)
                for policy, commitment in zip(contract.commitments, item.commitments, strict=True):
                    events += _of(contract, commitment, item.currency)
                    if policy.shortfall is not None:
                        _post_shortfalls(look, reader, f"{contract.id}/{commitment.id}", policy.shortfall, commitment)
    look.tell(events)
    if not is_known:
        with run.lease.write() as connection:
            save_contracts_revision(connection, look.revision)


def _post_shortfalls(
    look: Look, reader: TenantReader, name: str, policy: ShortfallSettings, commitment: CommitmentItem
) -> None:
    """Post what is left of the intervals that are over: the month of the last day gets it or, if that is closed, the
    first open one. Of what was posted before, only the difference is."""
    run, currency = look.run, look.run.tenant.settings.currency
    with run.store.control.read() as connection:
        books, known = read_books(connection), read_adjustments(connection)
    for each in commitment.intervals:
        if not each.is_over or each.shortfall is None:
            continue
        reference = f"contract {name} {each.start_date}"
        shares = _shares(reader, DayRange(each.start_date, each.end_date + ONE_DAY), policy, each.shortfall, currency)
        due = {(policy.by, value): amount for value, amount in shares.items()}
        for made in (one.made for one in known if one.made.reference == reference and one.removed_at is None):
            whose = (made.grouping, made.value)
            due[whose] = difference(due.get(whose, Decimal(0)), made.amount)
        month = AccountingPeriod.of(each.end_date)
        if books.first_open is not None:
            month = max(month, books.first_open)
        for (by, value), amount in sorted(due.items()):
            if amount:
                new = NewAdjustment(
                    period=month,
                    until=month,
                    grouping=by,
                    value=value,
                    from_value=None,
                    amount=rounded_cents(amount, currency),  # is one already, with too many digits
                    kind="fee",
                    applies_to=AccountingPeriod.of(each.end_date),
                    reason=f"Left of {name}, {each.start_date} to {each.end_date}",
                    reference=reference,
                )
                adjust(run.lease.write, new, _POSTS, run.now)


def _shares(
    reader: TenantReader, days: DayRange, policy: ShortfallSettings, shortfall: Decimal, currency: str
) -> dict[str, Decimal]:
    """Return what each value pays of a shortfall, in cents that sum to it."""
    whole = rounded_cents(shortfall, currency)
    if policy.value is not None:
        return {policy.value: whole}
    charged = sums_by(reader, CHARGEBACKS, Selection.of_days(days), (policy.by,))
    weights = sorted((value or "", to_units(amount)) for (value,), amount in charged.items() if amount > 0)
    places = minor_places(currency)
    cents = split_exactly(to_units(whole) // 10 ** (PLACES - places), weights) if weights else []
    return {value: from_units(units, places) for value, units in cents}


def _ending(look: Look, contract: ContractSettings) -> Iterator[Event]:
    today = look.run.today
    if contract.end_date - _SOON <= today <= contract.end_date:
        body = {"issuer": contract.issuer, "end_date": f"{contract.end_date}"}
        once = f"contract ending {contract.id} {contract.end_date}"
        yield Event(CONTRACT_ENDING, f"contract/{contract.id}", body, once)


def _of(contract: ContractSettings, commitment: CommitmentItem, currency: str) -> Iterator[Event]:
    """Yield the events of the intervals of a commitment: they are recorded once each."""
    for each in commitment.intervals:
        kind = _kind(each)
        if kind is not None:
            yield Event(
                kind,
                f"contract/{contract.id}",
                _body(commitment, each, currency),
                f"{kind} {contract.id}/{commitment.id} {each.start_date}",
            )


def _kind(interval: CommitmentInterval) -> str | None:
    if interval.remaining <= 0:
        return CONTRACT_EXHAUSTED
    length = (interval.end_date - interval.start_date).days + 1
    is_slow = interval.pace is not None and interval.pace < _SLOW and interval.counted_days >= _ENOUGH * length
    return CONTRACT_PACE if is_slow and interval.shortfall is not None and interval.shortfall > Decimal(0) else None


def _body(commitment: CommitmentItem, interval: CommitmentInterval, currency: str) -> dict[str, Any]:
    status = interval.model_dump(mode="json", include={"start_date", "end_date", "committed", "drawn", "shortfall"})
    what = {"commitment": commitment.id, "unit": commitment.unit, "currency": currency}
    return what | status | {"pace": interval.pace}
