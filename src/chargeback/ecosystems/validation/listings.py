"""Checks of an inventory: no duplicate record, no reserved name, and no entry that would be ignored."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import replace
from typing import Any, Final, TypeVar

from chargeback.ecosystems.validation.values import (
    InvalidValue,
    check_id,
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
)
from chargeback.model.inventory import GRANT, SYSTEM_IDENTITY, Grant, Identity, Inventory, ListedInventory, Resource

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
