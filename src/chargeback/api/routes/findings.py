"""Findings: what costs something without being used, and how findings are put off."""

from dataclasses import replace
from datetime import date
from typing import Annotated, Any, Final

from fastapi import APIRouter, Path
from sqlalchemy import Connection
from starlette.responses import Response

from chargeback.access.rights import Right
from chargeback.api.csv_tables import csv_response
from chargeback.api.dependencies import CallerDep, ContextDep, TenantDep
from chargeback.api.documentation import ALWAYS, documented
from chargeback.api.facts import FactsDep
from chargeback.api.parameters import body, no_parameters, query
from chargeback.api.problems import NotFound
from chargeback.api.responses import json_response
from chargeback.api.schemas.findings import FindingList, FindingsQuery, NewSnooze, SnoozeItem
from chargeback.model.money import render
from chargeback.service.executor import RequestContext
from chargeback.service.findings import Finding, findings
from chargeback.service.tenant_view import TenantView
from chargeback.store.control.snoozes import Snooze, put_snooze, read_snoozes, remove_snooze
from chargeback.store.queries.findings import IDLE_IDENTITY, IDLE_RESOURCE
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.version import DataVersion

router = APIRouter(prefix="/tenants/{tenant_name}/findings", tags=["Findings"])

_NO_FINDING = {404: "There is no such tenant or finding."}
_NUMBERS: Final = ("monthly_cost", "avoidable_cost", "bytes_in", "bytes_out")
_COLUMNS: Final = (
    *("id", "kind", "subject_type", "subject_id", "subject_name", "cluster_id", "owner", "since", "last_active"),
    *("measured_days", "unmeasured_days", "last_measured", "bytes_in", "bytes_out"),
    *("monthly_cost", "avoidable", "avoidable_cost", "confidence", "why", "action"),
    *("snooze_reason", "snooze_until"),
)

FindingId = Annotated[str, Path(description="The `id` of a finding.", pattern="^[0-9a-f]{16}$")]


@router.get("", response_model=FindingList, **documented(needs=Right.READ, query=FindingsQuery, etag=True))
async def list_findings(facts: FactsDep, params: Annotated[FindingsQuery, query(FindingsQuery)]) -> Response:
    """List what costs something and was not used, the most expensive first.

    A finding is about days that were measured; what was not measured is not taken for unused. `avoidable` tells how
    much of the cost goes with the subject. With `Accept: text/csv`, all findings are returned as a file.
    """
    tenant, today = facts.tenant, params.today
    snoozes = await facts.context.read_control(tenant, read_snoozes)

    def _make(reader: TenantReader, _version: DataVersion) -> Response:
        with tenant.store.control.read() as connection:
            found = findings(reader, connection, params.min_days, params.kind)
        known = [replace(each, snooze=_holding(snoozes.get(each.id), today)) for each in found]
        shown = [each for each in known if params.state == "all" or (each.snooze is not None) == _wants_snoozed(params)]
        if facts.wants_csv:
            return csv_response("findings.csv", _COLUMNS, map(_row, shown), numbers=_NUMBERS)
        page = params.paging
        body = {
            "items": [_item(each) for each in shown[page.offset : page.offset + page.limit]],
            "total": len(shown),
            "page": params.page,
            "page_size": params.page_size,
            "pages": -(-len(shown) // params.page_size),
            "currency": tenant.currency,
            "snoozed": sum(each.snooze is not None for each in known),
        }
        return json_response(body)

    also = [today.isoformat(), [each.as_json() | {"id": each.finding_id} for each in snoozes.values()]]
    return await facts.versioned_answer(params, _make, keep=True, also=also)


@router.put(
    "/{finding_id}/snooze",
    response_model=SnoozeItem,
    **documented(needs=Right.TAG, body=NewSnooze, answer="How the finding is put off.", problems=_NO_FINDING),
)
async def snooze_finding(
    tenant: TenantDep,
    context: ContextDep,
    caller: CallerDep,
    finding_id: FindingId,
    new: Annotated[NewSnooze, body(NewSnooze)],
) -> Response:
    """Put a finding off, with a reason, until a day or for good; an earlier snooze of it is replaced."""
    await _require(tenant, context, finding_id)
    author = caller.signature(new.created_by)

    def _put(connection: Connection) -> Snooze:
        return put_snooze(connection, finding_id, new.reason, new.until, author, who=caller.name)

    return json_response((await context.write_control(tenant, _put)).as_json())


@router.delete(
    "/{finding_id}/snooze",
    status_code=204,
    response_class=Response,
    **documented(needs=Right.TAG, answer="The finding is open.", only=(*ALWAYS, 403), problems=_NO_FINDING),
    dependencies=[no_parameters()],
)
async def wake_finding(tenant: TenantDep, context: ContextDep, caller: CallerDep, finding_id: FindingId) -> Response:
    """Put a finding off no longer."""
    if context.scope is not None:
        await _require(tenant, context, finding_id)
    if not await context.write_control(tenant, lambda each: remove_snooze(each, finding_id, who=caller.name)):
        raise _missing(finding_id)
    return Response(status_code=204)


async def _require(tenant: TenantView, context: RequestContext, finding_id: str) -> None:
    """Check that there is a finding with this id in what the caller sees.

    Raises:
        NotFound: there is none.
    """

    def _ids(reader: TenantReader) -> set[str]:
        with tenant.store.control.read() as connection:
            return {each.id for each in findings(reader, connection, min_days=1)}

    if finding_id not in await context.query_facts(tenant, _ids):
        raise _missing(finding_id)


def _missing(finding_id: str) -> NotFound:
    return NotFound(f"There is no finding {finding_id}, or it is not snoozed.")


def _holding(snooze: Snooze | None, today: date) -> Snooze | None:
    return snooze if snooze is not None and snooze.holds_on(today) else None


def _wants_snoozed(params: FindingsQuery) -> bool:
    return params.state == "snoozed"


def _item(finding: Finding) -> dict[str, Any]:
    facts = finding.facts
    is_topic = facts.kind not in {IDLE_IDENTITY, IDLE_RESOURCE}
    return {
        "id": finding.id,
        "kind": facts.kind,
        "subject": {
            "type": finding.subject_type,
            "id": finding.subject_id,
            "name": finding.display_name,
            "cluster_id": facts.place if is_topic else None,
        },
        "owner": finding.owner,
        "tags": finding.tags,
        "since": facts.since,
        "last_active": facts.last_active,
        "evidence": {
            "measured_days": facts.measured_days,
            "unmeasured_days": facts.unmeasured_days,
            "last_measured": facts.last_measured,
            "bytes_in": render(facts.used_in) if is_topic else None,
            "bytes_out": render(facts.used_out) if is_topic else None,
        },
        "monthly_cost": render(facts.monthly_cost),
        "avoidable": finding.avoidable,
        "avoidable_cost": render(facts.avoidable),
        "why": finding.why,
        "confidence": finding.confidence,
        "action": finding.action,
        "snooze": None if finding.snooze is None else finding.snooze.as_json(),
    }


def _row(finding: Finding) -> dict[str, Any]:
    """Return a finding with :data:`_COLUMNS`."""
    item = _item(finding)
    subject = {f"subject_{name}": item["subject"][name] for name in ("type", "id", "name")}
    snooze = item["snooze"] or {"reason": None, "until": None}
    others = {"cluster_id": item["subject"]["cluster_id"]}
    put_off = {f"snooze_{name}": snooze[name] for name in ("reason", "until")}
    row: dict[str, Any] = item | subject | others | item["evidence"] | put_off
    return row
