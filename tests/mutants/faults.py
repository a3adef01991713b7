"""The faults: the file, its source before and after, and the tests that should notice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Fault:
    """``before``, which occurs once in ``path`` below ``src/chargeback``, is replaced by ``after``. ``tests`` are
    folders and files below ``tests``, the closest first."""

    path: str
    before: str
    after: str
    tests: str


_ALLOCATION: Final = "allocation"
_CALCULATE: Final = (
    "pipeline/test_chargebacks.py pipeline/test_gather.py pipeline/test_remeasure.py pipeline/test_run.py"
)
_ACCESS: Final = "access api/test_authorisation.py api/test_authentication.py config/test_access.py"

FAULTS: Final = (
    # Allocation.
    Fault("allocation/split.py", "if left := magnitude - sum(shares):", "if False and (left := 0):", _ALLOCATION),
    Fault("allocation/split.py", "reverse=True)[:left]", "reverse=False)[:left]", _ALLOCATION),
    Fault(
        "allocation/split.py",
        "return shares if units >= 0 else [-share",
        "return shares if units >= 0 else [share",
        _ALLOCATION,
    ),
    Fault("allocation/split.py", "min(weights) <= 0", "min(weights) < 0", _ALLOCATION),
    Fault("allocation/split.py", "sign * (smaller + 1), sign * smaller", "sign * smaller, sign * smaller", _ALLOCATION),
    Fault("allocation/split.py", "(magnitude >> _FLOAT_DIGITS) + 1", "0", _ALLOCATION),
    Fault("allocation/split.py", "(2 * error + 2)", "1", _ALLOCATION),
    Fault("allocation/split.py", 'sort_keys="descending"', 'sort_keys="ascending"', _ALLOCATION),
    Fault("allocation/split.py", "pa.int64()), total // _MILLION", "pa.int64()), total", _ALLOCATION),
    Fault(
        "allocation/targets.py", 'pc.not_equal(billing["total_cost"]', 'pc.greater(billing["total_cost"]', _ALLOCATION
    ),
    Fault("allocation/targets.py", "strict=True), start=1):", "strict=True), start=0):", _ALLOCATION),
    Fault("allocation/targets.py", "pc.and_(is_real, is_positive)", "is_positive", _ALLOCATION),
    Fault(
        "allocation/targets.py", "elif position == 1 or method.kind", "elif position == 2 or method.kind", _ALLOCATION
    ),
    Fault("allocation/targets.py", "if not metrics_available:", "if metrics_available:", _ALLOCATION),
    Fault("allocation/members.py", "if subject != UNALLOCATED:", "if True:", _ALLOCATION),
    Fault(
        "allocation/members.py",
        "if everybody:\n            return everybody",
        "if False:\n            return everybody",
        _ALLOCATION,
    ),
    Fault("allocation/members.py", 'used = usage.filter(pc.greater(usage["value"], 0))', "used = usage", _ALLOCATION),
    Fault("allocation/members.py", "if parent := self._parents.get(resource_id):", "if parent := None:", _ALLOCATION),
    Fault("allocation/day.py", "if not cost.policy.is_proportional)", ")", _ALLOCATION),
    Fault("allocation/topics.py", "pc.invert(pc.is_in(evidence", "(pc.is_in(evidence", _ALLOCATION),
    Fault("allocation/topics.py", 'kept = "true" if self._plan.spreads_missing', 'kept = "true" if True', _ALLOCATION),
    # Access.
    Fault("access/caller.py", "return found | {Right.READ} if found else found", "return found", _ACCESS),
    Fault("access/caller.py", "if Right.ADMIN in found:", "if Right.TAG in found:", _ACCESS),
    Fault("access/roles.py", "each.fullmatch(user)", "each.match(user)", _ACCESS),
    Fault("access/roles.py", "(match := each.fullmatch(group))", "(match := each.match(group))", _ACCESS),
    Fault("access/roles.py", "if self.groups and not matches:", "if False:", _ACCESS),
    Fault("access/roles.py", "if names and all(part.get(each)", "if names and any(part.get(each)", _ACCESS),
    Fault(
        "access/roles.py",
        "not role.tenants or tenant_name in role.tenants",
        "tenant_name in role.tenants or True",
        _ACCESS,
    ),
    Fault("api/authorisation.py", "access.allows(Right.READ) else None", "True else None", _ACCESS),
    Fault("api/authorisation.py", "if not access.allows(needs):", "if False:", _ACCESS),
    Fault("api/authorisation.py", "if required.whole and access.scope is not None:", "if False:", _ACCESS),
    Fault(
        "api/authorisation.py", "needs = Right.EXPORT if exports else", "needs = Right.READ if exports else", _ACCESS
    ),
    # Queries.
    Fault(
        "store/queries/plan.py",
        "{amount} >= $min_amount",
        "{amount} > $min_amount",
        "store/queries/test_selection.py store/queries",
    ),
    Fault(
        "store/queries/selection.py",
        "holds_from <= date AND date < holds_to",
        "holds_from <= date AND date <= holds_to",
        "store/queries/test_tag_days.py store/queries",
    ),
    Fault(
        "store/queries/selection.py",
        'Condition((f"NOT {holds.sql}",)',
        'Condition((f"{holds.sql}",)',
        "store/queries/test_selection.py store/queries/test_tag_days.py store/queries",
    ),
    Fault(
        "store/queries/selection.py",
        'IS NOT TRUE)" if excludes',
        'IS TRUE)" if excludes',
        "store/queries/test_selection.py store/queries",
    ),
    Fault(
        "store/queries/keys.py",
        'offset * unit}" for start, offset in reversed(segments[1:])',
        'offset * unit}" for start, offset in segments[1:]',
        "store/queries/test_keys.py store/queries",
    ),
    Fault(
        "store/queries/keys.py",
        'if unit == "day" else f"date_trunc',
        'if unit != "month" else f"date_trunc',
        "store/queries/test_keys.py store/queries",
    ),
    Fault(
        "store/queries/keys.py",
        "{'-' if seconds < 0 else '+'}",
        "{'+' if seconds < 0 else '-'}",
        "store/queries/test_keys.py store/queries",
    ),
    Fault(
        "store/queries/paging.py",
        "before + rows > page.offset",
        "before + rows >= page.offset",
        "store/queries/test_paging.py store/queries",
    ),
    Fault(
        "store/queries/paging.py",
        "start = page.offset - before",
        "start = page.offset",
        "store/queries/test_paging.py store/queries",
    ),
    Fault(
        "store/queries/paging.py",
        "condition, offset = condition & first_row, 0",
        "condition = condition & first_row",
        "store/queries/test_paging.py store/queries",
    ),
    Fault(
        "store/queries/plan.py",
        "if key not in categories.by_key:",
        "if False:",
        "store/queries/test_scope_laws.py store/queries/test_narrowing.py store/queries api",
    ),
    Fault(
        "store/queries/plan.py",
        "columns += (ColumnFilter(column, values),)",
        "pass",
        "store/queries/test_scope_laws.py store/queries",
    ),
    Fault(
        "store/queries/partials.py",
        '"date < $end_day"',
        '"date <= $end_day"',
        "store/queries/test_partials.py store/queries",
    ),
    Fault(
        "store/queries/partials.py",
        "if {*TIME_COLUMNS, *each}.issuperset(reads)",
        "if not {*TIME_COLUMNS, *each}.isdisjoint(reads)",
        "store/queries/test_partials.py store/queries",
    ),
    Fault(
        "store/queries/tag_index.py",
        "{**_on(of_resource, day), **_on(of_identity, day)}",
        "{**_on(of_identity, day), **_on(of_resource, day)}",
        "store/queries/test_tag_index.py store/queries",
    ),
    Fault(
        "store/queries/tag_index.py",
        "return bisect_right(self.changes, day)",
        "return 0",
        "store/queries/test_tag_days.py store/queries/test_tag_index.py store/queries",
    ),
    # The pipeline.
    Fault("pipeline/chargebacks.py", "return billed <= charged", "return True", _CALCULATE),
    Fault("pipeline/chargebacks.py", "is_requested=run.request.recalculate", "is_requested=False", _CALCULATE),
    Fault("pipeline/chargebacks.py", "METRICS in due.state.incomplete or", "", _CALCULATE),
    Fault("pipeline/gather.py", "if times < _EMPTY_RESPONSES_ACCEPTED:", "if False:", _CALCULATE),
    Fault("pipeline/gather.py", "and seen == state.gathered_fingerprint", "and True", _CALCULATE),
    Fault("pipeline/gather.py", "if is_last or days[position + 1] != day + ONE_DAY:", "if is_last:", _CALCULATE),
    Fault("pipeline/gather.py", "state.tracking_date >= settled or", "", _CALCULATE),
    Fault("pipeline/gather.py", "if line.resource_id not in self._resources", "if False", _CALCULATE),
    Fault(
        "pipeline/chargebacks.py",
        "attempts < self._run.tenant.settings.allocation_retry_limit",
        "attempts <= self._run.tenant.settings.allocation_retry_limit",
        _CALCULATE,
    ),
    Fault(
        "pipeline/stage.py",
        "fingerprint=each.due.state.gathered_fingerprint",
        "fingerprint=each.due.state.of(derivation.dataset).fingerprint",
        _CALCULATE,
    ),
    Fault(
        "pipeline/retain.py",
        "return today - timedelta(days=retention_days)",
        "return today - timedelta(days=retention_days - 1)",
        "pipeline/test_retain.py pipeline",
    ),
    Fault(
        "pipeline/retain.py",
        "if run.record.gathering_error is not None:",
        "if False:",
        "pipeline/test_retain.py pipeline",
    ),
    Fault("pipeline/supervisor.py", "if name in self._cleared:", "if False:", "pipeline/test_supervisor.py"),
    # Storage of leases and days.
    Fault(
        "store/control/lease.py",
        "tenant.c.lease_epoch == self.epoch, tenant.c.lease_owner.is_not(None)",
        "tenant.c.lease_owner.is_not(None)",
        "store/control/test_lease.py",
    ),
    Fault(
        "store/control/lease.py",
        "epoch = row.lease_epoch + 1",
        "epoch = row.lease_epoch",
        "store/control/test_lease.py",
    ),
    Fault(
        "store/control/lease.py", "lease_expires_at <= now:", "lease_expires_at < now:", "store/control/test_lease.py"
    ),
)
