"""Revisions of days, and what changed between two moments."""

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import Path, Query
from starlette.responses import Response

from chargeback.access.rights import Right
from chargeback.api.parameters import Day
from chargeback.api.responses import json_response
from chargeback.api.routing import Routes
from chargeback.api.schemas.revisions import DayRevisions, Difference, DifferenceQuery
from chargeback.api.schemas.tenants import TenantsQuery
from chargeback.api.tenant_requests import Facts
from chargeback.model.days import DayRange, render_instant
from chargeback.model.money import difference, render, total
from chargeback.service.restatements import Restated, causes_between, restatement
from chargeback.store.control.day_revisions import Revision
from chargeback.store.facts.history import past_files
from chargeback.store.queries.as_of import REVISED, KnownRevisions
from chargeback.store.queries.reader import version_reader
from chargeback.store.queries.version import read_version

router = Routes(prefix="/tenants/{tenant_name}", tags=["Revisions"])


@router.get("/days/{date}/revisions", response_model=DayRevisions, needs=Right.READ, whole=True)
def list_revisions(
    request: Facts,
    day: Annotated[Day, Path(alias="date", description="A UTC day.")],
    _params: Annotated[TenantsQuery, Query()],
) -> Response:
    """List everything that a day has contained: from when on, why, and how much moved; the oldest first."""
    store = request.whole_store
    reader = request.reader
    with store.control.read() as connection:
        known = KnownRevisions.read(connection, DayRange.of_day(day))
    items = []
    for dataset in REVISED.values():
        present = reader.snapshot(dataset.table)
        past = past_files(store, dataset.table, present)
        for revision in known.effective(dataset.name, present).get(day, ()):
            names = None if revision.files is None else revision.files.get(dataset.table)
            is_kept = names is None or past.find(day, names) is not None
            items.append(_item(revision, is_kept=is_kept))
    return json_response({"date": day, "items": items})


def _item(revision: Revision, *, is_kept: bool) -> dict[str, Any]:
    return {
        "dataset": revision.dataset,
        "revision": revision.revision,
        "calculated_at": render_instant(revision.calculated_at),
        "cause": revision.cause,
        "run_id": None if revision.run_id is None else str(revision.run_id),
        "rows": revision.rows,
        "total": None if revision.total is None else render(revision.total),
        "moved": None if revision.moved is None else render(revision.moved),
        "billing_fingerprint": revision.billing_fingerprint,
        "policies_hash": revision.policies_hash,
        "is_kept": is_kept,
    }


@router.get("/chargebacks/diff", response_model=Difference, needs=Right.READ, keep=True)
def compare_moments(request: Facts, params: Annotated[DifferenceQuery, Query()]) -> Response:
    """Compare what was served at `from_as_of` with what was served at `as_of`, by default now; the largest changes
    first, each with its causes. Page parameters are ignored."""
    tenant, context = request.tenant, request.context
    reader = request.reader
    version = request.version
    earlier = read_version(request.whole_store, context.token, request.executor.lookups, params.from_as_of)
    before = version_reader(reader.cursor, request.whole_store, earlier, request.executor.lookups, reader.scope)
    with tenant.store.control.read() as connection:
        causes = causes_between(connection, params.from_as_of, params.as_of)
    selection = params.selection(tenant.lookback_days, version.control.last_calculated)
    found = restatement(before, reader, selection, params.group_by, causes)
    listed, rest = found.items[: params.limit], found.items[params.limit :]
    return json_response(
        {
            "currency": tenant.currency,
            "total_before": render(found.before),
            "total_after": render(found.after),
            "delta": render(difference(found.after, found.before)),
            "moved": render(found.moved),
            "items": [
                {"dimensions": dict(zip(params.group_by, item.key, strict=True))}
                | _amounts([item])
                | {"causes": list(item.causes)}
                for item in listed
            ],
            "other": {"count": len(rest)} | _amounts(rest) if rest else None,
        }
    )


def _amounts(items: Sequence[Restated]) -> dict[str, str]:
    before, after = total(item.before for item in items), total(item.after for item in items)
    return {
        "before": render(before),
        "after": render(after),
        "delta": render(difference(after, before)),
    }
