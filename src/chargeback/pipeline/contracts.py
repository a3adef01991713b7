"""Contracts in a run: a commitment that is used up, that will not be, or that ends soon is told once."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from typing import Any, Final

from chargeback.config.contracts import ContractSettings
from chargeback.pipeline.look import Look
from chargeback.reports.contracts import CommitmentInterval, CommitmentItem, Standing
from chargeback.store.control.catalogue import contracts_revision, save_contracts_revision
from chargeback.store.control.events import CONTRACT_ENDING, CONTRACT_EXHAUSTED, CONTRACT_PACE, Event

#: How long before its end it is told that a contract ends.
_SOON: Final = timedelta(days=60)
#: Below which part of the usual pace, and after which part of an interval, it is told that something will be left.
_SLOW: Final = 0.9
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
            events += [each for commitment in item.commitments for each in _of(contract, commitment, item.currency)]
    look.tell(events)
    if not is_known:
        with run.lease.write() as connection:
            save_contracts_revision(connection, look.revision)


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
