"""Roles: what the configuration gives to users and groups.

The roles are tried in the order of the file, and for each tenant the first that fits decides: what a caller may do can
be read from top to bottom, and a narrow role cannot be widened by one below it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from chargeback.access.caller import Caller, CallerKind, Right, TenantAccess, rights_of
from chargeback.access.scope import RowScope
from chargeback.model.inventory import NO_VALUES

_REFERENCE: Final = re.compile(r"\$\$\{|\$\{(?:(?P<name>[A-Za-z_][A-Za-z0-9_]*)\})?")


@dataclass(frozen=True)
class Role:
    """One entry of ``access.roles``.

    Attributes:
        name: how explanations name it, such as ``roles[2]``.
        allow: the rights that it gives.
        users: regular expressions of user names; empty means all of them.
        groups: regular expressions, one of which must match a group as a whole; empty means none is needed.
        tenants: names of tenants; empty means all.
        scope: conditions on rows, with ``${name}`` for the text that a named part of an expression of ``groups``
            matched; None means all rows. Only one condition has such names: two would also allow combinations that no
            single group grants.
    """

    name: str
    allow: frozenset[Right]
    users: tuple[re.Pattern[str], ...] = ()
    groups: tuple[re.Pattern[str], ...] = ()
    tenants: frozenset[str] = frozenset()
    scope: Mapping[str, Sequence[str]] | None = None

    def access(self, user: str, groups: Iterable[str]) -> TenantAccess | None:
        """Return what the role gives to a user, on each of its tenants; None where it does not fit."""
        if self.users and not any(each.fullmatch(user) for each in self.users):
            return None
        matches = [match for each in self.groups for group in groups if (match := each.fullmatch(group))]
        if self.groups and not matches:
            return None
        scope = None if self.scope is None else self._scope(matches)
        return TenantAccess(rights_of(self.allow), scope, self.name)

    def _scope(self, matches: Sequence[re.Match[str]]) -> RowScope:
        parts = [match.groupdict() for match in matches]
        conditions = {}
        for name, values in (self.scope or {}).items():
            found: set[str] = set()
            for value in values:
                names = names_in(value)
                if not names:
                    found.add(_filled(value, {}))
                for part in parts:
                    # Another expression of the role may have matched, which does not have the names. A group that is
                    # called like the rows without a value is not given these rows: nor is one with an empty name.
                    if names and all(part.get(each) for each in names):
                        found |= {_filled(value, part)} - NO_VALUES
            conditions[name] = found
        return RowScope.of(conditions)


def names_in(value: str) -> frozenset[str]:
    """Return the names of a value of a scope. ``$${`` is a literal ``${``, and any other ``$`` is itself.

    >>> sorted(names_in("${team}-${stage} costs $5 $${each}"))
    ['stage', 'team']

    Raises:
        ValueError: ``${`` without a name and ``}``.
    """
    names = set()
    for reference in _REFERENCE.finditer(value):
        if reference[0] == "${":
            raise ValueError("`${` needs a name and a `}`: ${team}; write $${ for a literal ${")
        if reference["name"]:
            names.add(reference["name"])
    return frozenset(names)


def _filled(value: str, matched: Mapping[str, str | None]) -> str:
    """Return a value of a scope with what the names in it matched."""
    return _REFERENCE.sub(lambda each: matched[each["name"]] or "" if each["name"] else "${", value)


@dataclass(frozen=True)
class Roles:
    """All roles, in order."""

    roles: Sequence[Role] = field(default_factory=tuple)

    def caller(self, user: str, kind: CallerKind, groups: Iterable[str] = ()) -> Caller:
        """Return a caller with what the roles give. The expressions are matched once, not for each tenant."""
        found = tuple(dict.fromkeys(groups))
        given = self._given(user, found)
        return Caller(user, kind, found, lambda tenant_name: next(_on(given, tenant_name), None))

    def fitting(self, user: str, groups: Sequence[str], tenant_name: str) -> list[TenantAccess]:
        """Return what each role that fits a tenant gives; the first one decides."""
        return list(_on(self._given(user, groups), tenant_name))

    def _given(self, user: str, groups: Sequence[str]) -> list[tuple[Role, TenantAccess]]:
        return [(role, access) for role in self.roles if (access := role.access(user, groups))]


def _on(given: Iterable[tuple[Role, TenantAccess]], tenant_name: str) -> Iterator[TenantAccess]:
    """Yield what is given on a tenant."""
    return (access for role, access in given if not role.tenants or tenant_name in role.tenants)
