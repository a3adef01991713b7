"""Statements as pages that need nothing else: one file with its style, which prints well and escapes every text."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from functools import cache
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined

from chargeback.allocation.policies import Policy
from chargeback.model.cents import rounded_cents
from chargeback.model.days import render_instant
from chargeback.model.inventory import UNALLOCATED
from chargeback.model.money import render
from chargeback.service.statements.content import (
    DIRECT,
    LINE_KINDS,
    SHARED_IN,
    SHARED_OUT,
    Line,
    ProductPolicy,
    Ranked,
    Recipient,
    Stated,
    Statement,
    Statements,
)
from chargeback.service.wording import calendar_day, month_text, percent

_KINDS: Final = {DIRECT: "Direct costs", SHARED_IN: "Handed on by others", SHARED_OUT: "Handed on to others"}
_EFFECTS: Final = {
    "calendar": "More or fewer days with costs",
    "quantity": "Larger or smaller quantities",
    "price": "Higher or lower prices",
    "policy": "Split in another way",
    "share": "Another part of the usage",
    "ownership": "Another part as an owner or member",
    "new": "Not billed before",
    "gone": "No longer billed",
}
_UNITS: Final = {"gib_in": "GiB written", "gib_out": "GiB read"}
_ACRONYMS: Final = frozenset({"API", "CKUS", "CFUS", "CSUS", "GL", "ID", "SSL", "USM"})
_MINUS: Final = "−"


def statement_html(found: Statements, statement: Statement) -> str:
    """Return one of the statements of a month as a page."""
    return _environment().get_template("statement.html").render(found=found, statement=statement)


def index_html(found: Statements, names: Mapping[str, Mapping[str, str]]) -> str:
    """Return the page that lists the statements of a month. ``names`` are their files: number → format → name."""
    return _environment().get_template("index.html").render(found=found, files=names)


@cache
def content_policy() -> str:
    """Return the Content-Security-Policy under which a page works: its own style, and nothing else."""
    style = _environment().get_template("statement.css").render()
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return (
        f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


def words(code: str) -> str:
    """Return a code in words.

    >>> words("KAFKA_NUM_CKUS"), words("cost_center")
    ('Kafka CKUs', 'Cost center')
    """
    parts = [part for place, part in enumerate(code.split("_")) if part and (part != "NUM" or not place)]
    words = [_word(part) for part in parts]
    return " ".join([words[0][:1].upper() + words[0][1:], *words[1:]]) if words else code


def plain(amount: Decimal) -> str:
    """Return an amount in cents, with separators.

    >>> plain(Decimal("-1234.565"))
    '−1,234.56'
    """
    return f"{rounded_cents(amount):,.2f}".replace("-", _MINUS)


def _word(part: str) -> str:
    upper = part.upper()
    if upper not in _ACRONYMS:
        return part.lower()
    return f"{upper[:-1]}s" if upper.endswith("US") else upper


def _signed(amount: Decimal) -> str:
    return plain(amount) if rounded_cents(amount) < 0 else f"+{plain(amount)}"


def title(recipient: Recipient) -> str:
    """Return what a statement for a value is called."""
    if recipient.value == UNALLOCATED:
        return "Costs without an identity"
    return recipient.name or recipient.value


def _dimension(by: str) -> str:
    return words(by.partition(":")[2] or by.removesuffix("_id"))


def _in_order_of_kinds(groups: Iterable[tuple[str, Sequence[Line]]]) -> list[tuple[str, Sequence[Line]]]:
    return sorted(groups, key=lambda group: LINE_KINDS.index(group[0]))


def _by_policy(applied: Iterable[ProductPolicy]) -> list[tuple[Policy, list[str]]]:
    """Return each policy with the product types that it splits, in the order of these."""
    found: dict[Policy, list[str]] = {}
    for each in applied:
        found.setdefault(each.policy, []).append(each.product_type)
    return list(found.items())


def _ranked_name(each: Ranked) -> str:
    return "No identity" if each.id == UNALLOCATED else each.name or each.id


def _ranked_note(each: Ranked) -> str:
    return each.within or (each.id if each.name and each.name != each.id else "")


@cache
def _environment() -> Environment:
    found = Environment(
        loader=PackageLoader(__package__),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters |= _FILTERS
    return found


def _decimals(number: Decimal, places: int) -> str:
    return f"{round(number, places):,}"


def _instant(instant: datetime) -> str:
    return f"{calendar_day(instant.date())}, {instant:%H:%M} UTC"


def _sum_of_lines(lines: Iterable[Line]) -> Stated:
    return Stated.sum(line.amount for line in lines)


_FILTERS: Final[Mapping[str, Any]] = {
    "by_policy": _by_policy,
    "cents": rounded_cents,
    "day": calendar_day,
    "dimension": _dimension,
    "decimals": _decimals,
    "effect": _EFFECTS.__getitem__,
    "exact": render,
    "in_order_of_kinds": _in_order_of_kinds,
    "instant": _instant,
    "iso": render_instant,
    "kind": _KINDS.__getitem__,
    "month": month_text,
    "percent": percent,
    "plain": plain,
    "ranked_name": _ranked_name,
    "ranked_note": _ranked_note,
    "signed": _signed,
    "subtotal": lambda kind: f"{_KINDS[kind]}, together",
    "sum_of_lines": _sum_of_lines,
    "title": title,
    "unit": _UNITS.__getitem__,
    "words": words,
}
