"""Policies with dates are never changed silently: those by which days were calculated stay, or the days are calculated
again."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import groupby

from sqlalchemy import Connection

from chargeback.allocation.policies import PolicyCatalogue, PolicyVersion
from chargeback.config import Tenant
from chargeback.errors import ConfigProblem, PluginError, PoliciesChanged
from chargeback.model.days import ONE_DAY
from chargeback.recompute.rules import with_stored
from chargeback.store.control.closings import read_books
from chargeback.store.control.day_revisions import read_policy_versions
from chargeback.store.control.policies import AppliedVersion, read_applied
from chargeback.store.control.revisions import read_revisions

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ChangedDays:
    """Days that were calculated by another version of the tenant's own policies than the ``version`` that is in force
    on them now, None where none is."""

    version: PolicyVersion | None
    days: tuple[date, ...]

    def problem(self, tenant_name: str, begins: date) -> ConfigProblem:
        """Return what is wrong in words; ``begins`` is the first day on which a version may begin."""
        first, last = self.days[0], self.days[-1]
        count = "1 day was" if len(self.days) == 1 else f"{len(self.days)} days were"
        now = "no version is in force on them any more"
        if self.version is not None:
            now = f"the version from {self.version.effective_from} ({self.version.reason}) is in force on them now"
        return ConfigProblem(
            f"tenants.{tenant_name}.plugin_settings.allocation_policies",
            f"{count} calculated by other policies ({first} to {last}), and {now}: let a change begin on {begins} or "
            f"later (effective_from), or calculate them again: `chargeback run --tenant {tenant_name} --recalculate "
            f"--restate --from {first} --to {last}`",
        )


def _said_twice(
    tenant_name: str, configured: PolicyCatalogue, catalogue: PolicyCatalogue, applied: Sequence[AppliedVersion]
) -> list[ConfigProblem]:
    """Return a problem for each version of the configuration in whose place another one was applied."""
    own = {each.effective_from: each for each in configured.versions}
    present = {each.effective_from: each for each in catalogue.versions}
    return [
        ConfigProblem(
            f"tenants.{tenant_name}.plugin_settings.allocation_policies",
            f"the version from {each.effective_from} is not the one that {each.applied_by} applied ({each.reason}): "
            "write that one (`chargeback policies show`), or let this one begin on another day",
        )
        for each in applied
        if (mine := own.get(each.effective_from)) and mine.hash != present[each.effective_from].hash
    ]


def changed_days(
    connection: Connection, catalogue: PolicyCatalogue, applied: Collection[date] = ()
) -> list[ChangedDays]:
    """Return the days that were calculated by another version than is in force on them now, by version: one that has
    calculated days is never changed silently. The versions of the days ``applied`` have said so.

    Raises:
        StorageError: the control database cannot be read.
    """
    since = catalogue.versions[0].effective_from if catalogue.versions else None
    calculated = read_policy_versions(connection, since)
    changed = [day for day, calculated_by in calculated.items() if calculated_by != catalogue.version_hash(day)]
    return [
        ChangedDays(version, tuple(days))
        for version, days in groupby(changed, catalogue.version_on)
        if version is None or version.effective_from not in applied
    ]


def check_policies(connection: Connection, tenant: Tenant) -> None:
    """Check that the policies of a tenant are those by which its days were calculated, if they have dates. A version
    that was applied has marked the days that it calculates again.

    Raises:
        PoliciesChanged: they are not.
        StorageError: the control database cannot be read.
    """
    applied = read_applied(connection)
    try:
        configured, catalogue = tenant.catalogue, with_stored(tenant, connection).catalogue
    except PluginError:
        return  # the run says what is wrong with the ecosystem
    if twice := _said_twice(tenant.name, configured, catalogue, applied):
        raise PoliciesChanged(twice)
    changed = changed_days(connection, catalogue, {each.effective_from for each in applied})
    if changed:
        books, last = read_books(connection), read_revisions(connection).last_calculated or changed[-1].days[-1]
        begins = max(last + ONE_DAY, last if books.first_open is None else books.first_open.start)
        raise PoliciesChanged([each.problem(tenant.name, begins) for each in changed])
