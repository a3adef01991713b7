"""Revisions of days, and what changed between two moments."""

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Path
from starlette.responses import Response

from chargeback.access.rights import Right
from chargeback.api.documentation import documented
from chargeback.api.facts import FactsDep
from chargeback.api.parameters import Day, query
from chargeback.api.responses import json_response
from chargeback.api.schemas.revisions import DayRevisions, Difference, DifferenceQuery
from chargeback.api.schemas.tenants import TenantsQuery
from chargeback.model.days import DayRange, render_instant
from chargeback.model.money import difference, render, total
from chargeback.service.restatements import Restated, causes_between, restatement
from chargeback.store.control.day_revisions import Revision
from chargeback.store.facts.history import past_files
from chargeback.store.queries.as_of import REVISED, KnownRevisions
from chargeback.store.queries.reader import TenantReader, version_reader
from chargeback.store.queries.version import DataVersion, read_version

router = APIRouter(prefix="/tenants/{tenant_name}", tags=["Revisions"])


@router.get(
    "/days/{date}/revisions",
    response_model=DayRevisions,
    **documented(needs=Right.READ, whole=True, query=TenantsQuery, etag=True),
)
async def list_revisions(
    facts: FactsDep,
    day: Annotated[Day, Path(alias="date", description="A UTC day.")],
    params: Annotated[TenantsQuery, query(TenantsQuery)],
) -> Response:
    """List everything that a day has contained: from when on, why, and how much moved; the oldest first."""
    store = facts.whole_store

    def _make(reader: TenantReader) -> Response:
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

    return await facts.answer(params, _make)


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


@router.get(
    "/chargebacks/diff", response_model=Difference, **documented(needs=Right.READ, query=DifferenceQuery, etag=True)
)
async def compare_moments(facts: FactsDep, params: Annotated[DifferenceQuery, query(DifferenceQuery)]) -> Response:
    """Compare what was served at `from_as_of` with what was served at `as_of`, by default now; the largest changes
    first, each with its causes. Page parameters are ignored."""
    tenant, context = facts.tenant, facts.context

    def _make(reader: TenantReader, version: DataVersion) -> Response:
        earlier = read_version(facts.whole_store, context.token, facts.executor.lookups, params.from_as_of)
        before = version_reader(reader.cursor, facts.whole_store, earlier, facts.executor.lookups, reader.scope)
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

    return await facts.versioned_answer(params, _make, keep=True)


def _amounts(items: Sequence[Restated]) -> dict[str, str]:
    before, after = total(item.before for item in items), total(item.after for item in items)
    return {
        "before": render(before),
        "after": render(after),
        "delta": render(difference(after, before)),
    }
