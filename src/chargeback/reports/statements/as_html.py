"""Statements as self-contained pages: one file with its style, suitable for printing, in which every text is
escaped."""

from __future__ import annotations

import base64
import hashlib
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from itertools import accumulate, takewhile
from typing import TYPE_CHECKING, Any, Final

from chargeback.allocation.methods import MethodKind
from chargeback.config.settings import Dates, Numbers
from chargeback.model.cents import rounded_cents
from chargeback.model.days import render_instant
from chargeback.model.inventory import UNALLOCATED
from chargeback.model.money import render
from chargeback.reports.statements.content import (
    DIRECT,
    LINE_KINDS,
    SHARED_IN,
    SHARED_OUT,
    RankedPart,
    StatedAmount,
    StatementAnswer,
    StatementFormat,
    StatementLine,
    StatementPolicy,
    StatementRecipient,
    Statements,
)
from chargeback.reports.wording import calendar_day, counted, month_text, percent

if TYPE_CHECKING:
    from jinja2 import Environment

_KINDS: Final = {DIRECT: "Direct costs", SHARED_IN: "Reallocated from others", SHARED_OUT: "Reallocated to others"}
_EFFECTS: Final = {
    "calendar": "More or fewer days with costs",
    "quantity": "Larger or smaller quantities",
    "price": "Higher or lower prices",
    "policy": "Split in another way",
    "share": "Another share of the usage",
    "ownership": "Another part as an owner or member",
    "correction": "Charges and refunds that offset each other",
    "new": "Not billed before",
    "gone": "No longer billed",
}
#: The causes of corrections of earlier months; other causes are shown by the words of their codes.
_CAUSES: Final = {
    "first": "calculated for the first time",
    "bill_changed": "the bill changed",
    "policy_changed": "the policy changed",
    "metrics_returned": "metrics became available",
    "members_changed": "who belonged to what changed",
    "manual": "calculated again on request",
    "repair": "lost files were restored",
    "tag_changed": "tags were changed",
    "category_changed": "cost categories were changed",
}
_UNITS: Final = {"gib_in": "GiB written", "gib_out": "GiB read"}
_ACRONYMS: Final = frozenset({"API", "CKUS", "CFUS", "CSUS", "GL", "ID", "SSL", "USM"})
_MINUS: Final = "−"
#: The replacements of the separators of thousands and decimals; the narrow space is a non-breaking one.
_SEPARATORS: Final[Mapping[Numbers, Mapping[int, str]]] = {
    "1,234.56": {},
    "1.234,56": {ord(","): ".", ord("."): ","},
    "1 234,56": {ord(","): "\u202f", ord("."): ","},
}
_DAYS: Final[Mapping[Dates, Callable[[date], str]]] = {
    "14 November 2026": calendar_day,
    "14.11.2026": lambda day: f"{day:%d.%m.%Y}",
    "2026-11-14": date.isoformat,
}
#: The filters that write only a number.
_NUMBERS: Final = ("decimals", "part_of", "plain", "printed", "signed", "unit_cost")
#: Removed at the end of a shortened text: spaces, and the joiner of emoji.
_JOINERS: Final = " \u200d"


def statement_html(found: Statements, statement: StatementAnswer) -> str:
    """Return one of the statements of a month as a page."""
    return _environment(found.heading.format).get_template("statement.html").render(found=found, statement=statement)


def index_html(found: Statements, names: Mapping[str, Mapping[str, str]]) -> str:
    """Return the page that lists the statements of a month. ``names`` are their files: number → format → name."""
    return _environment(found.heading.format).get_template("index.html").render(found=found, files=names)


@cache
def content_policy() -> str:
    """Return the Content-Security-Policy under which a page works: its own style, and nothing else."""
    style = _environment().get_template("statement.css").render()
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return (
        f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


def words(code: str) -> str:
    """Return a code in words. Pages always spell "cost centre" this way.

    >>> words("KAFKA_NUM_CKUS"), words("cost_center")
    ('Kafka CKUs', 'Cost centre')
    """
    parts = [part for place, part in enumerate(code.split("_")) if part and (part != "NUM" or not place)]
    text = " ".join(map(_word, parts)).replace("cost center", "cost centre")
    return text[:1].upper() + text[1:] if parts else code


def plain(amount: Decimal, currency: str) -> str:
    """Return an amount in cents, with separators.

    >>> plain(Decimal("-1234.565"), "USD"), plain(Decimal("122769.27"), "JPY"), plain(Decimal("1.5"), "KWD")
    ('−1,234.56', '122,769', '1.500')
    """
    return _printed(rounded_cents(amount, currency))


def _printed(cents: Decimal) -> str:
    return f"{cents:,f}".replace("-", _MINUS)


def _word(part: str) -> str:
    upper = part.upper()
    if upper not in _ACRONYMS:
        return part.lower()
    return f"{upper[:-1]}s" if upper.endswith("US") else upper


def _signed(amount: Decimal, currency: str) -> str:
    return f"{'' if rounded_cents(amount, currency) < 0 else '+'}{plain(amount, currency)}"


def title(recipient: StatementRecipient) -> str:
    """Return the title of a statement."""
    if recipient.value == UNALLOCATED:
        return "Costs without an identity"
    return recipient.name or recipient.value


def _causes(codes: Iterable[str]) -> str:
    """Return why a month was corrected."""
    text = ", ".join(_CAUSES.get(code, words(code).lower()) for code in codes)
    return text[:1].upper() + text[1:]


def _dimension(by: str) -> str:
    return words(by.partition(":")[2] or by.removesuffix("_id"))


def _in_order_of_kinds(
    groups: Iterable[tuple[str, Sequence[StatementLine]]],
) -> list[tuple[str, Sequence[StatementLine]]]:
    return sorted(groups, key=lambda group: LINE_KINDS.index(group[0]))


def _by_policy(applied: Iterable[StatementPolicy]) -> list[list[StatementPolicy]]:
    """Return the policies in the order of their product types, equal ones grouped."""
    found: dict[str, list[StatementPolicy]] = {}
    for each in applied:
        found.setdefault(each.hash, []).append(each)
    return list(found.values())


def _ranked_name(each: RankedPart) -> str:
    return "No identity" if each.id == UNALLOCATED else each.name or each.id


def _ranked_note(each: RankedPart) -> str:
    return each.within or (each.id if each.name and each.name != each.id else "")


@cache
def _environment(form: StatementFormat | None = None) -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined  # which services do not need before a statement

    found = Environment(
        loader=PackageLoader(__package__),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters |= {**_FILTERS, **({} if form is None else _written(form))}
    found.globals["currency_first"] = form is not None and form.currency == "before"
    return found


def _written(form: StatementFormat) -> dict[str, Callable[..., str]]:
    """Return the filters for numbers and days in a format."""
    separators, day = _SEPARATORS[form.numbers], _DAYS[form.dates]

    def _number(write: Callable[..., str]) -> Callable[..., str]:
        return lambda *args: write(*args).translate(separators)

    return {name: _number(_FILTERS[name]) for name in _NUMBERS} | {
        "day": day,
        "instant": lambda instant: _instant(instant, day),
        "policy_text": lambda policy: _policy_text(policy, _number(percent)),
    }


def shortened(text: str, columns: int) -> str:
    """Return a text of at most ``columns`` columns, shortened with an ellipsis where it is longer: the characters
    of East Asia and emoji take two, marks that belong to another character none.

    >>> shortened("payments", 8), shortened("payments", 6), shortened("決済チーム", 6)
    ('payments', 'payme…', '決済…')
    """
    if sum(map(_columns, text)) <= columns:
        return text
    used = accumulate(map(_columns, text))
    end = sum(1 for _ in takewhile(lambda width: width < columns, used))
    return f"{text[:end].rstrip(_JOINERS)}…"


def _columns(character: str) -> int:
    if unicodedata.category(character) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if unicodedata.east_asian_width(character) in {"W", "F"} else 1


def _policy_text(policy: StatementPolicy, share_text: Callable[[Decimal], str] = percent) -> str:
    """Return the portions of a policy with their methods, without the last one, which all share."""
    parts = []
    for portion in policy.portions:
        methods = [each for each in portion.methods if each != MethodKind.UNALLOCATED] or [MethodKind.UNALLOCATED]
        share = "" if len(policy.portions) == 1 else f"{share_text(portion.share)} "
        parts.append(f"{share}{', else '.join(methods)}")
    return "; ".join(parts)


def _unit_cost(cost: Decimal) -> str:
    """Return a cost of a unit with four decimal places; a small one with two significant digits."""
    return _decimals(cost, 4 if not cost or cost.adjusted() >= -3 else 1 - cost.adjusted())


def _decimals(number: Decimal, places: int) -> str:
    return f"{round(number, places):,}"


def _instant(instant: datetime, day: Callable[[date], str] = calendar_day) -> str:
    return f"{day(instant.date())}, {instant:%H:%M} UTC"


_FILTERS: Final[Mapping[str, Any]] = {
    "by_policy": _by_policy,
    "causes": _causes,
    "cents": rounded_cents,
    "counted": counted,
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
    "part_of": lambda amount, whole: percent(round(amount / whole, 2)),
    "plain": plain,
    "policy_text": _policy_text,
    "printed": _printed,
    "ranked_name": _ranked_name,
    "ranked_note": _ranked_note,
    "shortened": shortened,
    "signed": _signed,
    "subtotal": lambda kind: f"{_KINDS[kind]}, together",
    "sum_of_lines": StatedAmount.sum,
    "title": title,
    "unit_cost": _unit_cost,
    "unit": _UNITS.__getitem__,
    "words": words,
}
