"""An event as a message: a sentence that is true by itself, and a link to the place."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Final
from urllib.parse import quote, urlencode

from chargeback.model.cents import rounded_cents
from chargeback.model.days import render_instant
from chargeback.store.control.deliveries import subject_of
from chargeback.store.control.events import DIGEST_WEEKLY

#: The event of a message that is sent to try a sink; it is never recorded.
TEST: Final = "test"


@dataclass(frozen=True, slots=True)
class Message:
    """A message.

    Attributes:
        id: the same each time that it is sent, so that receivers recognise repetitions.
        kind: what has happened, such as ``budget.crossed``.
        subject: what it has happened to, such as ``budget/payments``.
        sentence: what to read.
        details: further lines, where a sentence is not enough.
        link: where to look, if the service knows where people reach it.
        body: what there is to say about it, as the event has it.
    """

    id: str
    kind: str
    subject: str
    at: datetime
    tenant: str
    sentence: str
    link: str | None
    body: Mapping[str, Any]
    details: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The message for people."""
        gap = [""] if self.details else []
        return "\n".join([self.sentence, *gap, *self.details, *([] if self.link is None else [*gap, self.link])])

    @property
    def payload(self) -> dict[str, Any]:
        """The message as JSON."""
        about = {"tenant": self.tenant, "subject": self.subject, "sentence": self.sentence, "link": self.link}
        return {"type": self.kind, "timestamp": render_instant(self.at), "data": about | {"body": dict(self.body)}}


def message_of(tenant: str, event: Mapping[str, Any], page_url: str | None) -> Message:
    """Return the message of an event of a tenant: its ``kind``, ``subject``, ``at``, ``body`` and ``dedupe_key``."""
    kind, subject, body = event["kind"], event["subject"], event["body"]
    number = hashlib.blake2b(f"{tenant}\n{event['dedupe_key']}\n{event['at']}".encode(), digest_size=16)
    link = None if page_url is None else f"{page_url.rstrip('/')}/{quote(tenant)}/{_place(kind, body)}"
    name = subject.partition("/")[2]
    sentence = _one_line(f"{tenant}: {_SENTENCES[kind](name, body)}")
    details = tuple(map(_one_line, _digest_lines(body))) if kind == DIGEST_WEEKLY else ()
    return Message(f"msg_{number.hexdigest()}", kind, subject, event["at"], tenant, sentence, link, body, details)


def try_message(tenant: str, sink: str, at: datetime, page_url: str | None) -> Message:
    """Return a message that says that a sink works."""
    event = {"kind": TEST, "subject": subject_of(sink), "at": at, "body": {}, "dedupe_key": f"test {sink}"}
    return message_of(tenant, event, page_url)


def _money(amount: str | None, currency: str) -> str:
    return "an unknown amount" if amount is None else f"{rounded_cents(Decimal(amount), currency):,f} {currency}"


def _budget(name: str, body: Mapping[str, Any], said: str) -> str:
    currency, expected = body["currency"], body["expected"]
    known = f"{_money(body['to_date'], currency)} of {_money(body['amount'], currency)} to date"
    if expected is not None:
        known += f", {_money(expected, currency)} expected at the end of the month"
    return f"the budget {body['name'] or name} {said} in {body['period_id']}: {known}."


def _reached(body: Mapping[str, Any]) -> str:
    whose = {"actual": "of its amount", "forecast": "of its amount by the forecast", "pace": "of the days' part of it"}
    return f"{Decimal(body['percent']).normalize():f} % {whose[body['on']]}"


_SENTENCES: Final[Mapping[str, Callable[[str, Mapping[str, Any]], str]]] = {
    "period.ready": lambda name, body: f"all {body['days']} days of {name} are calculated; it can be closed.",
    "period.closed": lambda name, body: (
        f"{name} was closed; {_money(body.get('posted'), body.get('currency', ''))} was booked."
    ),
    "period.reopened": lambda name, _: f"{name} was opened again.",
    "period.sealed": lambda name, _: f"{name} was sealed, and does not change any more.",
    "correction.posted": lambda _, body: (
        f"a correction of {_money(body['amount'], body['currency'])} for {body['charge_period']} was posted to "
        f"{body['period_id']}."
    ),
    "budget.crossed": lambda name, body: _budget(name, body, f"has reached {_reached(body)}"),
    "budget.cleared": lambda name, body: _budget(name, body, f"is below {_reached(body)} again"),
    "budget.late": lambda name, body: _budget(name, body, f"has reached {_reached(body)} by costs that came late"),
    "anomaly.opened": lambda _, body: f"{body['sentence']}.{_more(body['more'])}",
    "anomaly.grew": lambda _, body: f"{body['sentence']}. It has grown to {_money(body['impact'], body['currency'])}.",
    "anomaly.resolved": lambda _, body: (
        f"{body['sentence']}. It is over: {_money(body['impact'], body['currency'])} altogether."
    ),
    "anomaly.withdrawn": lambda _, body: (
        f"what stood out on {body['first_date']} does not any more, by what is known now."
    ),
    "shadow.ready": lambda name, body: f"the shadow {name} has {body['days']} complete days.",
    "shadow.ended": lambda name, body: f"the shadow {name} has ended, before {body['end']}.",
    "sink.dead": lambda name, body: f"messages do not reach {name} any more: {body['error']}.",
    "statement.issued": lambda name, _: f"the statements of {name} are issued.",
    "invoice.differs": lambda name, body: (
        f"the invoices of {name} are {_money(body['difference'].removeprefix('-'), body['currency'])} "
        f"{'less' if body['difference'].startswith('-') else 'more'} than its bill: "
        f"{_money(body['invoiced'], body['currency'])} instead of {_money(body['billed'], body['currency'])}."
    ),
    "statement.disputed": lambda name, body: f"{body['by']} disputes the statement {name}: {_ended(body['note'])}",
    "run.failed": lambda _, body: f"a run has failed: {_ended(body['error'])}",
    "tenant.suspended": lambda _, body: f"its bill is no longer gathered: {_ended(body['reason'])}",
    "contract.pace": lambda name, body: (
        f"{_commitment(name, body)}: {_size(body['drawn'], body)} drawn, {body['pace']:.0%} of what is for these days; "
        f"{_size(body['shortfall'], body)} may be left at the end."
    ),
    "contract.exhausted": lambda name, body: f"{_commitment(name, body)} is used up.",
    "contract.ending": lambda name, body: f"the contract {name} with {body['issuer']} ends on {body['end_date']}.",
    DIGEST_WEEKLY: lambda _, body: (
        f"{_money(body['amount'], body['currency'])} in the week from {body['start_date']} to {body['end_date']}"
        f"{_compared(body['amount'], body['before'])}."
    ),
    TEST: lambda name, _: f"this message says that {name} can be reached.",
}


def _ended(text: str) -> str:
    """Return a text with one full stop at its end."""
    return f"{text.rstrip(' .')}."


def _commitment(name: str, body: Mapping[str, Any]) -> str:
    days = f"{body['start_date']} to {body['end_date']}"
    return f"{_size(body['committed'], body)} of {days} ({body['commitment']} of the contract {name})"


def _size(amount: str, body: Mapping[str, Any]) -> str:
    """Return an amount of money, or a quantity of usage."""
    unit = body["unit"]
    return _money(amount, body["currency"]) if unit is None else f"{Decimal(amount).normalize():,f} {unit}"


def _one_line(text: str) -> str:
    """Return a text without line breaks, also if names have some."""
    return " ".join(text.split())


def _compared(amount: str, before: str | None) -> str:
    if before is None or not Decimal(before):
        return ""
    part = (Decimal(amount) - Decimal(before)) / Decimal(before)
    if abs(part) < Decimal("0.005"):
        return ", as much as in the week before"
    return f", {abs(part):.0%} {'more' if part > 0 else 'less'} than in the week before"


def _digest_lines(body: Mapping[str, Any]) -> Iterator[str]:
    """Yield what there is to say of a week, a line each."""
    currency = body["currency"]
    for each in body["changes"]:
        moved = Decimal(each["difference"])
        who = each["name"] or each["identity_id"]
        more = "more" if moved > 0 else "less"
        yield f"- {who}: {_money(each['amount'], currency)}, {_money(f'{abs(moved):f}', currency)} {more}"
    for each in body["stands_out"]:
        yield f"- Stands out: {each}"
    for each in body["budgets"]:
        said = "is exceeded" if each["state"] == "exceeded" else "has reached a threshold"
        known = f"{_money(each['to_date'], currency)} of {_money(each['budget'], currency)}"
        yield f"- The budget {each['name']} {said}: {known} to date"
    for each in body["unused"]:
        yield f"- Unused: {each['subject']}, {_money(each['monthly_cost'], currency)} a month; {each['why']}"
    if body["unused_more"]:
        yield f"- and {body['unused_more']} more; all together {_money(body['unused_cost'], currency)} a month"
    if Decimal(body["unallocated"]):
        yield f"- Nobody is charged for {_money(body['unallocated'], currency)} of it"


def _more(count: int) -> str:
    if not count:
        return ""
    return f" {count} more {'stands' if count == 1 else 'stand'} out."


def _place(kind: str, body: Mapping[str, Any]) -> str:
    """Return the page that shows more about an event, with the days or the month that it is about."""
    places = {
        "anomaly": "anomalies",
        "period": "month-end",
        "correction": "month-end",
        "invoice": "month-end",
        "statement": "statement",
        "run": "days",
        "tenant": "days",
        "budget": "budgets",
        "contract": "budgets",
        "shadow": "policies",
    }
    page = places.get(kind.partition(".")[0], "costs")
    if page == "budgets" and "period_id" in body:
        return f"{page}?{urlencode({'period': body['period_id']})}"
    if page == "anomalies":
        last = body.get("last_date", body["first_date"])
        return f"{page}?{urlencode({'start_date': body['first_date'], 'end_date': last})}"
    return page
