"""Checks of what a plugin returns: the plugin itself, its bill, its inventory and its measurements.

Every day of a bill occurs once, and every line has all that a calculation needs. An inventory has no duplicate record,
no reserved name, and no entry that would be ignored. Measurements have the schema, and each row belongs to the day and
occurs once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import replace
from datetime import UTC, date
from decimal import Decimal
from operator import attrgetter
from typing import Any, Final, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from chargeback.allocation.policies import PolicyCatalogue
from chargeback.ecosystems.contract import Capabilities, Finding, FocusEcosystem, GatheredDay, MeasuredUsage
from chargeback.ecosystems.focus import FocusProfile
from chargeback.ecosystems.settings import PluginSettings
from chargeback.ecosystems.validation.values import (
    RESERVED_IDS,
    InvalidValue,
    check_amount,
    check_count,
    check_day,
    check_id,
    check_instant,
    check_mapping,
    check_metadata,
    check_names,
    check_own_id,
    check_records,
    check_text,
    check_type,
    expect,
    optional_id,
    optional_instant,
    optional_text,
    quote,
)
from chargeback.model.billing import BillingLine
from chargeback.model.days import DayRange
from chargeback.model.inventory import GRANT, SYSTEM_IDENTITY, Grant, Identity, Inventory, ListedInventory, Resource
from chargeback.model.texts import MAX_ID_LENGTH, MAX_TOPIC_LENGTH, MAX_TYPE_LENGTH, clean_column
from chargeback.model.topics import EXISTED
from chargeback.model.usage import QUANTITY, QUANTITY_LIMIT, USAGE

_AMOUNTS: Final = ("quantity", "unit_price", "original_amount", "discount_amount")
_TEXTS: Final = (
    "resource_name",
    "unit",
    "network_access_type",
    "description",
    "tier",
    "provider_id",
    "original_text",
)
_TWICE: Final = "the day was returned twice; return each day exactly once"
_FIELDS: Final = {
    "resource_id": check_own_id,
    "resource_type": check_type,
    "product_category": check_id,
    "product_type": check_id,
    "granularity": check_id,
    "environment_id": optional_id,
    **dict.fromkeys(_TEXTS, optional_text),
}
_REQUIRED_TEXTS: Final = attrgetter("resource_id", "resource_type", "product_category", "product_type", "granularity")
_OPTIONAL_TEXTS: Final = attrgetter("environment_id", *_TEXTS)

_Record = TypeVar("_Record", Resource, Identity, Grant)
_Check = Callable[[Any, str], Any]

_TIMES: Final[dict[str, _Check]] = {"created_at": optional_instant, "deleted_at": optional_instant}
_RESOURCE: Final[dict[str, _Check]] = {
    "resource_id": check_own_id,
    "resource_type": check_type,
    "display_name": optional_text,
    "parent_id": optional_id,
    "owner_id": optional_id,
    "active_as": optional_id,
    "metadata": check_metadata,
    **_TIMES,
}
_IDENTITY: Final[dict[str, _Check]] = {
    "identity_id": check_own_id,
    "identity_type": check_type,
    "display_name": optional_text,
    "metadata": check_metadata,
    **_TIMES,
}
_GRANT: Final[dict[str, _Check]] = {"grant_id": check_id, "resource_id": check_id, "identity_id": check_id, **_TIMES}

_KEY: Final = ("measure", "resource_id", "subject")
_TRUE: Final = pa.scalar(True)
_EMPTY: Final = pa.scalar("")

PARTS: Final = ("name", "capabilities", "settings_model", "catalogue", "tenant_catalogue", "open")
GATHERER_PARTS: Final = ("billing", "inventory", "usage", "topics", "check")
TOPIC_PARTS: Final = ("topic_settings", "topic_plan")


def check_days(answers: Iterable[object], days: DayRange, currency: str, asked: str) -> Iterator[GatheredDay]:
    """Yield every day of the range, each with its lines or with its error; ``asked`` names the method that was called.

    A day that occurs twice is yielded again with an error, so that a caller who stored the first one learns that it is
    incomplete. A missing day comes last, with an error.

    Raises:
        InvalidValue: a result belongs to no day of the range; every day has been yielded by then.
    """
    seen: set[date] = set()
    stray: str | None = None
    for number, answer in enumerate(answers, start=1):
        try:
            gathered = expect(GatheredDay, answer, f"answer {number}")
            day = check_day(gathered.day, f"day of answer {number}")
        except InvalidValue as mistake:
            stray = stray or str(mistake)
            continue
        if day not in days:
            stray = stray or f"{day} was not requested; {days.start} to {days.end} (exclusive) was"
        elif day in seen:
            yield GatheredDay(day, error=f"{asked}: {_TWICE}")
        else:
            seen.add(day)
            yield _day(gathered, currency, asked)
    for day in days:
        if day not in seen:
            yield GatheredDay(day, error=f"{asked}: the day was not returned{f' ({stray})' if stray else ''}")
    if stray is not None:
        raise InvalidValue(stray)


def _day(gathered: GatheredDay, currency: str, asked: str) -> GatheredDay:
    try:
        error: Any = gathered.error
        if error is not None:
            return GatheredDay(gathered.day, error=check_text(error, "error"))
        lines = []
        for place, line in check_records(BillingLine, gathered.lines, "lines", "line"):
            try:
                lines.append(check_line(line, gathered.day, currency))
            except InvalidValue as mistake:
                raise InvalidValue(f"{place}: {mistake}") from None
    except InvalidValue as mistake:
        return GatheredDay(gathered.day, error=f"{asked}: {mistake}")
    return GatheredDay(gathered.day, lines)


def check_line(line: BillingLine, day: date, currency: str) -> BillingLine:
    """Return a line of the bill of ``day``, in the tenant's ``currency``."""
    if check_day(line.day, "day") != day:
        raise InvalidValue(f"day should be {day}, the day that it is returned for, not {line.day}")
    if check_instant(line.timestamp, "timestamp").astimezone(UTC).date() != day:
        raise InvalidValue(f"timestamp should be within {day} UTC, not at {line.timestamp.isoformat()}")
    check_amount(line.total_cost, "total_cost")
    for name in _AMOUNTS:
        value = getattr(line, name)
        if value is not None:
            check_amount(value, name)
    if line.currency != currency:
        raise InvalidValue(f"currency should be {currency}, the tenant's, not {quote(line.currency)}")
    if line.ecosystem is not None:
        raise InvalidValue("ecosystem should be None: the service knows it")
    if _is_plain(line):
        return line
    changes: dict[str, Any] = {}
    for name, check in _FIELDS.items():
        value = getattr(line, name)
        checked = check(value, name)
        if checked != value:
            changes[name] = checked
    return replace(line, **changes) if changes else line


def _is_plain(line: BillingLine) -> bool:
    """Return whether no text of a line needs cleaning: a fast check, because a bill has many lines and nearly all
    pass."""
    for value in _REQUIRED_TEXTS(line):
        if type(value) is not str or not value.isprintable() or not 1 < len(value) <= MAX_TYPE_LENGTH or " " in value:
            return False
    for value in _OPTIONAL_TEXTS(line):
        if value is not None and (
            type(value) is not str or not value.isprintable() or not 0 < len(value) < MAX_ID_LENGTH
        ):
            return False
    return line.resource_id not in RESERVED_IDS and line.resource_type != SYSTEM_IDENTITY


def check_listing(answer: object) -> ListedInventory:
    """Return the checked listing."""
    listed = expect(ListedInventory, answer, "the answer")
    inventory = expect(Inventory, listed.inventory, "inventory")
    checked = Inventory(
        resources=_records(Resource, inventory.resources, "resource", _RESOURCE, ("resource_id",)),
        identities=_records(Identity, inventory.identities, "identity", _IDENTITY, ("identity_id",)),
        grants=_records(Grant, inventory.grants, "grant", _GRANT, ("grant_id", "resource_id")),
    )
    complete, partial, required = (
        check_names(getattr(listed, name), name) for name in ("complete", "partial", "required")
    )
    failures = {
        check_text(name, "a key of failures"): check_text(why, f"failures[{name!r}]")
        for name, why in check_mapping(listed.failures, "failures").items()
    }
    _check_types(checked, {"complete": complete, "partial": partial, "failures": failures.keys()})
    return ListedInventory(checked, complete, partial, failures, required)


def _records(
    kind: type[_Record], value: object, word: str, checks: dict[str, _Check], key: tuple[str, ...]
) -> tuple[_Record, ...]:
    """Return the records of one kind, each once. If only cleaning made two ids equal, the first record is kept."""
    found: dict[Hashable, _Record] = {}
    given: set[Hashable] = set()
    field = {Resource: "resources", Identity: "identities", Grant: "grants"}[kind]
    for place, record in check_records(kind, value, f"inventory.{field}", word):
        as_given = tuple(getattr(record, name) for name in key)
        changes = {}
        for name, check in checks.items():
            try:
                checked = check(getattr(record, name), name)
            except InvalidValue as mistake:
                raise InvalidValue(f"{place}{_called(as_given)}: {mistake}") from None
            if checked is not getattr(record, name) and checked != getattr(record, name):
                changes[name] = checked
        if as_given in given:
            raise InvalidValue(
                f"{place}{_called(as_given)}: its {' and '.join(key)} was listed before; list each {word} once"
            )
        given.add(as_given)
        cleaned = replace(record, **changes) if changes else record
        found.setdefault(tuple(getattr(cleaned, name) for name in key), cleaned)
    return tuple(found.values())


def _called(key: tuple[Any, ...]) -> str:
    return f" ({', '.join(each[:60] for each in key)})" if all(isinstance(each, str) and each for each in key) else ""


def _check_types(inventory: Inventory, sets: dict[str, Iterable[str]]) -> None:
    """Check that every type has one meaning and is listed in one way."""
    resource_types = {each.resource_type for each in inventory.resources}
    identity_types = {each.identity_type for each in inventory.identities}
    for name in sorted(resource_types & identity_types):
        raise InvalidValue(f"{name!r} is both a resource type and an identity type; types share one namespace")
    for reserved in (GRANT, SYSTEM_IDENTITY):
        if reserved in resource_types | identity_types:
            raise InvalidValue(f"{reserved!r} is reserved; choose another name for the type")
    for first, second in (("complete", "partial"), ("complete", "failures"), ("partial", "failures")):
        for name in sorted(set(sets[first]) & set(sets[second])):
            raise InvalidValue(f"{name!r} is in both {first} and {second}; it should be in one of them")
    named = set().union(*sets.values())
    for name in _listed_types(inventory):
        if name not in named:
            raise InvalidValue(
                f"{name!r} was listed, but is in none of complete, partial and failures: it would be ignored"
            )


def _listed_types(inventory: Inventory) -> Iterator[str]:
    yield from sorted({each.resource_type for each in inventory.resources})
    yield from sorted({each.identity_type for each in inventory.identities})
    if inventory.grants:
        yield GRANT


def check_usage(answer: object, day: date) -> MeasuredUsage:
    """Return the checked usage of ``day``."""
    return _measured(answer, day, longest_subject=MAX_ID_LENGTH)


def check_topics(answer: object, day: date) -> MeasuredUsage:
    """Return the checked topic measures of ``day``."""
    measured = _measured(answer, day, longest_subject=MAX_TOPIC_LENGTH)
    if pc.any(pc.equal(measured.table["measure"], EXISTED)).as_py():
        raise InvalidValue(f"measure should not be {EXISTED!r}, which is reserved")
    return measured


def _measured(answer: object, day: date, *, longest_subject: int) -> MeasuredUsage:
    measured = expect(MeasuredUsage, answer, "the answer")
    dropped = check_count(measured.dropped, "dropped")
    given = expect(pa.Table, measured.table, "table")
    table = _with_schema(given)
    _check_rows(table, day)
    _check_once(table)
    limits = dict(zip(_KEY, (MAX_ID_LENGTH, MAX_ID_LENGTH, longest_subject), strict=True))
    cleaned = table
    for name, longest in limits.items():
        column = table[name]
        clean = clean_column(column, longest)
        _check_none(table, pc.equal(pc.utf8_trim_whitespace(clean), _EMPTY), f"{name} should not be empty")
        if clean is not column:
            cleaned = cleaned.set_column(table.schema.get_field_index(name), USAGE.field(name), clean)
    return MeasuredUsage(table if cleaned is table else _added_up(cleaned), dropped)


def _with_schema(table: pa.Table) -> pa.Table:
    """Return the table in the order of the schema, whose names and types it must have; a field may be declared
    nullable. Of the columns of the schema, those that may be null may also be missing: they were added to it later than
    the plugin was written."""
    missing = [field.name for field in USAGE if field.name not in table.column_names and not field.nullable]
    extra = sorted(set(table.column_names) - set(USAGE.names))
    if missing or extra or table.num_columns != len(set(table.column_names)):
        what = f"lacks {', '.join(missing)}" if missing else f"has {', '.join(extra) or 'a column twice'} too much"
        raise InvalidValue(f"table should have the columns {', '.join(USAGE.names)}; it {what}")
    for field in USAGE:
        if field.name not in table.column_names:
            table = table.append_column(field, pa.nulls(table.num_rows, field.type))
        column = table[field.name]
        if column.type != field.type:
            raise InvalidValue(f"column {field.name} of the table should be {field.type}, not {column.type}")
        if column.null_count and not field.nullable:
            row = pc.index(pc.is_null(column), True).as_py() + 1
            raise InvalidValue(f"row {row}: {field.name} should not be null")
    return pa.table([table[name] for name in USAGE.names], schema=USAGE)


def _check_rows(table: pa.Table, day: date) -> None:
    _check_none(table, pc.not_equal(table["date"], pa.scalar(day, pa.date32())), f"date should be {day}", shown="date")
    zero, limit = (pa.scalar(Decimal(each), QUANTITY) for each in (0, QUANTITY_LIMIT - 1))
    _check_none(table, pc.less(table["value"], zero), "value should be at least 0", shown="value")
    _check_none(
        table, pc.greater(table["value"], limit), f"value should be below 10^{QUANTITY_LIMIT.adjusted()}", shown="value"
    )


def _check_none(table: pa.Table, wrong: pa.ChunkedArray, expected: str, *, shown: str | None = None) -> None:
    position = pc.index(wrong, _TRUE).as_py()
    if position >= 0:
        found = f", not {table[shown][position].as_py()}" if shown else ""
        raise InvalidValue(f"row {position + 1}: {expected}{found}")


def _check_once(table: pa.Table) -> None:
    counted = table.group_by(_KEY, use_threads=False).aggregate([([], "count_all")])
    if counted.num_rows != table.num_rows:
        twice = counted.filter(pc.greater(counted["count_all"], 1)).slice(0, 1).to_pylist()[0]
        key = ", ".join(f"{name} {twice[name][:60]!r}" for name in _KEY)
        raise InvalidValue(f"{twice['count_all']} rows have {key}; add them up")


def _added_up(table: pa.Table) -> pa.Table:
    """Return rows that only cleaning made equal added up to one."""
    summed = table.group_by(["date", *_KEY], use_threads=False).aggregate([("value", "sum")])
    columns = {name: summed[name] for name in ("date", *_KEY)}
    return _with_schema(pa.table(columns | {"value": summed["value_sum"].cast(QUANTITY)}))


def check_plugin(plugin: Any) -> None:
    """Check that ``plugin`` has all members of :class:`chargeback.ecosystems.contract.Ecosystem`."""
    missing = [part for part in PARTS if not hasattr(plugin, part)]
    if missing:
        raise InvalidValue(f"it lacks {', '.join(missing)}")
    if not isinstance(plugin.name, str) or not plugin.name:
        raise InvalidValue("it has no name")
    model = plugin.settings_model
    if not (isinstance(model, type) and issubclass(model, PluginSettings)):
        raise InvalidValue("its settings_model does not extend chargeback.ecosystems.settings.PluginSettings")
    capabilities = expect(Capabilities, plugin.capabilities, "capabilities")
    _check_capabilities(capabilities)
    expect(PolicyCatalogue, plugin.catalogue, "catalogue")
    if isinstance(plugin, FocusEcosystem):
        expect(FocusProfile, plugin.focus_profile, "focus_profile")
    methods = ("tenant_catalogue", "open", *(TOPIC_PARTS if capabilities.topic_overlay else ()))
    for name in methods:
        if not callable(getattr(plugin, name, None)):
            raise InvalidValue(f"{name} should be a method")


def _check_capabilities(capabilities: Capabilities) -> None:
    for name in ("topic_overlay", "constructs_costs"):
        expect(bool, getattr(capabilities, name), f"capabilities.{name}")
    expect(tuple, capabilities.payer_tiers, "capabilities.payer_tiers")
    for number, tier in enumerate(capabilities.payer_tiers):
        check_names(tier, f"capabilities.payer_tiers[{number}]")
    check_type(capabilities.metrics_identity_type, "capabilities.metrics_identity_type")
    check_count(capabilities.billing_history_days, "capabilities.billing_history_days", least=1)


def check_gatherer(gatherer: Any) -> None:
    """Check that the result of ``open`` has all methods."""
    missing = [name for name in GATHERER_PARTS if not callable(getattr(gatherer, name, None))]
    if missing:
        raise InvalidValue(
            f"the with-block should return a gatherer; {quote(gatherer)} has no method {', '.join(missing)}"
        )


def check_finding(answer: object) -> Finding:
    """Return one finding of a check."""
    finding = expect(Finding, answer, "the answer")
    for name in ("ok", "warning"):
        expect(bool, getattr(finding, name), name)
    detail = check_text(finding.detail, "detail") if finding.detail else ""
    return Finding(check_text(finding.subject, "subject"), finding.ok, detail, finding.warning)
