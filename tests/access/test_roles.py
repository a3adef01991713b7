"""Roles: for each tenant, the first matching role of the file decides."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chargeback.access.caller import ALL_RIGHTS, Right, TenantAccess, rights_of
from chargeback.access.roles import Role, Roles, names_in
from chargeback.access.scope import RowScope

TEAM = "team-(?P<team>.+)"
CENTER = "category:cost_center"
USERS = ("ann", "bob")
GROUPS = ("platform", "finance", "team-a", "team-b")
TENANTS = ("acme", "globex")


def role(name: str = "roles[0]", allow: str = "read", **more: Any) -> Role:
    """Return a role with patterns from strings."""
    for key in ("users", "groups"):
        more[key] = tuple(map(re.compile, more.get(key, ())))
    return Role(name, frozenset({Right(allow)}), **more | {"tenants": frozenset(more.get("tenants", ()))})


def access(
    roles: Sequence[Role], groups: Iterable[str] = (), tenant: str = "acme", user: str = "ann"
) -> TenantAccess | None:
    """Return what a user may do with a tenant."""
    return Roles(roles).caller(user, "proxy", groups).access(tenant)


def scope_of(roles: Sequence[Role], *groups: str) -> Mapping[str, Sequence[str]] | None:
    """Return the scope of a user with these groups, who must have access."""
    found = access(roles, groups)
    assert found is not None
    return None if found.scope is None else found.scope.as_json()


def test_the_example_of_the_documentation() -> None:
    """Platform has all rights, finance exports everything, a team reads its rows of one tenant, others have no
    access."""
    roles = [
        role("roles[0]", "admin", groups=["platform"]),
        role("roles[1]", "export", groups=["finance"]),
        role("roles[2]", "read", groups=[TEAM], tenants=["acme"], scope={CENTER: ["${team}"]}),
    ]
    assert access(roles, ["team-a", "platform"]) == TenantAccess(ALL_RIGHTS, None, "roles[0]")
    assert access(roles, ["finance"]) == TenantAccess(rights_of([Right.EXPORT]), None, "roles[1]")
    assert access(roles, ["team-a"]) == TenantAccess(frozenset({Right.READ}), RowScope.of({CENTER: ["a"]}), "roles[2]")
    assert access(roles, ["team-a"], "globex") is None
    assert access(roles, []) is None


def test_several_groups_of_one_role() -> None:
    """A user in two teams sees the rows of both."""
    roles = [role(groups=[TEAM], scope={CENTER: ["${team}", "shared"], "environment_id": ["env-1"]})]
    assert scope_of(roles, "team-b", "other", "team-a") == {
        CENTER: ["a", "b", "shared"],
        "environment_id": ["env-1"],
    }


def test_expressions_match_as_a_whole() -> None:
    """An expression must match the whole name."""
    roles = [role(groups=["platform"], users=["ann"])]
    assert access(roles, ["platform"])
    for user, group in (("annabel", "platform"), ("joann", "platform"), ("ann", "platform2"), ("ann", "my-platform")):
        assert access(roles, [group], user=user) is None


def test_users_and_groups_both_have_to_fit() -> None:
    """A role with users and groups applies to those users while they are in one of the groups."""
    roles = [role(users=["ann"], groups=["finance"])]
    assert access(roles, ["finance"])
    assert access(roles, ["other"]) is None
    assert access(roles, ["finance"], user="bob") is None


def test_a_name_that_no_group_gives_a_value() -> None:
    """If no group gives the name a value, or only an empty one, the scope allows no row rather than every row."""
    roles = [role(groups=["team-(?P<team>.*)", "guests"], scope={CENTER: ["${team}"]})]
    assert scope_of(roles, "guests") == {CENTER: []}
    assert scope_of(roles, "team-") == {CENTER: []}
    assert scope_of(roles, "team-a", "guests") == {CENTER: ["a"]}


@pytest.mark.parametrize("name", ["UNASSIGNED", "UNTAGGED", "UNALLOCATED"])
def test_a_group_that_is_called_like_rows_without_a_value(name: str) -> None:
    """A group named like rows without a value gives no access to them; a scope that lists them does."""
    assert scope_of([role(groups=[TEAM], scope={CENTER: ["${team}"]})], f"team-{name}", "team-a") == {CENTER: ["a"]}
    assert scope_of([role(groups=[TEAM], scope={CENTER: [name]})], "team-a") == {CENTER: [name]}


def test_parts_of_one_group_belong_together() -> None:
    """Two names in one value come from the same group."""
    roles = [role(groups=["(?P<unit>.+)/(?P<stage>.+)"], scope={"tag:app": ["${unit}-${stage}"]})]
    assert scope_of(roles, "a/test", "b/prod") == {"tag:app": ["a-test", "b-prod"]}


def test_a_part_without_text() -> None:
    """If one of two names in a value matched an empty text, the value allows nothing."""
    roles = [role(groups=["(?P<unit>.*)/(?P<stage>.*)"], scope={"tag:app": ["${unit}-${stage}"]})]
    assert scope_of(roles, "a/", "/test") == {"tag:app": []}


def test_dollars_that_are_meant() -> None:
    """Only ``${name}`` is replaced, ``$${`` is a literal ``${``, and values from group names are not replaced again."""
    roles = [role(groups=[TEAM], scope={CENTER: ["${team}", "$team", "5$", "$${team}"]})]
    assert scope_of(roles, "team-${team}") == {CENTER: ["$team", "${team}", "5$"]}
    with pytest.raises(ValueError, match="needs a name"):
        names_in("${team")


def test_the_caller() -> None:
    """A caller has a name, its groups, each once, and what its roles give."""
    caller = Roles([role(groups=["finance"])]).caller("ann", "proxy", ["finance", "x", "finance"])
    assert (caller.name, caller.kind, caller.groups) == ("ann", "proxy", ("finance", "x"))
    assert caller.access("acme") == TenantAccess(frozenset({Right.READ}), None, "roles[0]")
    assert Roles().caller("ann", "proxy").access("acme") is None


ROLES = st.lists(
    st.builds(
        Role,
        name=st.just(""),
        allow=st.sets(st.sampled_from(sorted(ALL_RIGHTS)), min_size=1).map(frozenset),
        users=st.lists(st.sampled_from(USERS), max_size=2).map(lambda names: tuple(map(re.compile, names))),
        groups=st.lists(st.sampled_from([*GROUPS, TEAM]), max_size=2).map(lambda names: tuple(map(re.compile, names))),
        tenants=st.sets(st.sampled_from(TENANTS)).map(frozenset),
        scope=st.sampled_from([None, {CENTER: ["${team}"]}, {CENTER: ["shared"]}]),
    ),
    max_size=6,
).map(lambda found: [replace(each, name=f"roles[{position}]") for position, each in enumerate(found)])
CALLER: dict[str, Any] = {
    "user": st.sampled_from(USERS),
    "groups": st.sets(st.sampled_from(GROUPS)),
    "tenant": st.sampled_from(TENANTS),
}


def expected(roles: Sequence[Role], user: str, groups: set[str], tenant: str) -> TenantAccess | None:
    """Return what a user may do, by an independent calculation."""
    for each in roles:
        patterns = {pattern.pattern for pattern in each.groups}
        teams = {group.removeprefix("team-") for group in groups if group.startswith("team-") and TEAM in patterns}
        in_group = not patterns or patterns & groups or teams
        is_user = not each.users or user in {pattern.pattern for pattern in each.users}
        if in_group and is_user and tenant in (each.tenants or TENANTS):
            values = None if each.scope is None else teams if "${team}" in each.scope[CENTER] else {"shared"}
            scope = None if values is None else RowScope.of({CENTER: values})
            return TenantAccess(rights_of(each.allow), scope, each.name)
    return None


@given(roles=ROLES, **CALLER)
def test_the_first_role_that_fits_decides(roles: list[Role], user: str, groups: set[str], tenant: str) -> None:
    """Rights, scope and tenants come from the first matching role, whatever the order of groups."""
    assert access(roles, sorted(groups), tenant, user) == expected(roles, user, groups, tenant)
    assert access(roles, sorted(groups)[::-1], tenant, user) == expected(roles, user, groups, tenant)


@given(roles=ROLES, more=ROLES, **CALLER)
def test_a_role_below_never_widens_one_above(
    roles: list[Role], more: list[Role], user: str, groups: set[str], tenant: str
) -> None:
    """Adding a role at the end of the file does not change the rights and rows of users whom earlier roles match."""
    before = access(roles, sorted(groups), tenant, user)
    if before is not None:
        assert access([*roles, *more], sorted(groups), tenant, user) == before
