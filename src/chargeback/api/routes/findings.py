"""Findings: what costs something without being used, and how findings are put off."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from typing import Annotated, Any, Final, Literal

from fastapi import Body, Path, Query
from pydantic import Field
from starlette.responses import Response

from chargeback.access.rights import Right
from chargeback.api.dependencies import CallerDep
from chargeback.api.documentation import COMMON_STATUSES
from chargeback.api.parameters import CommonParameters, Day, Note, StrictModel
from chargeback.api.problems import NotFound
from chargeback.api.responses import csv_response, json_response
from chargeback.api.routes.tags import Author
from chargeback.api.routing import CSV, Routes
from chargeback.api.schemas.common import Decimal, Instant, PageOf, ResponseModel, Sum
from chargeback.api.tenant_requests import Change, ChangeRequest, Facts, FactsRequest
from chargeback.model.money import render
from chargeback.reports.findings import IDLE_IDENTITY, IDLE_RESOURCE, LOOK_BACK_DAYS, MONTH_DAYS, Finding, findings
from chargeback.store.control.snoozes import Snooze, put_snooze, read_snoozes, remove_snooze

FindingKind = Literal[
    "topic_without_traffic", "topic_never_read", "topic_never_written", "idle_resource", "idle_identity"
]


class FindingsQuery(CommonParameters):
    """Parameters of the findings, which are about the last calculated days; date parameters are ignored."""

    kind: list[FindingKind] = Field(default=[], description="Only findings of this kind, repeatable.")
    min_days: int = Field(
        default=14,
        ge=1,
        le=LOOK_BACK_DAYS,
        description="On how many measured days, at least, the subject was not used since it last was.",
    )
    state: Literal["open", "snoozed", "all"] = Field(
        default="open", description="Only findings that are not snoozed, only those that are, or all."
    )


class NewSnooze(StrictModel):
    """Why a finding is put off, and until when."""

    reason: Note = Field(description="For those who see it later.", examples=["Kept for the audit of 2026"])
    until: Day | None = Field(
        default=None, description="The UTC day on which the finding is open again. Default: never."
    )
    created_by: Author = "api"


class SnoozeItem(ResponseModel):
    """How a finding was put off."""

    reason: str = Field(examples=["Kept for the audit of 2026"])
    until: date | None = Field(description="The UTC day on which the finding is open again; null for never.")
    created_by: str = Field(examples=["alice"])
    created_at: Instant


class FindingSubject(ResponseModel):
    """What a finding is about."""

    type: str = Field(description="Its type in the inventory.", examples=["kafka_topic"])
    id: str = Field(examples=["lkc-abc123:topic:orders"])
    name: str | None = Field(examples=["orders"])
    cluster_id: str | None = Field(description="The cluster of a topic.", examples=["lkc-abc123"])


class FindingEvidence(ResponseModel):
    """What was measured since the subject was last used."""

    measured_days: int = Field(description="UTC days on which it was charged and measured.")
    unmeasured_days: int = Field(description="UTC days on which it was charged, but not measured.")
    last_measured: date
    bytes_in: Decimal | None = Field(description="Bytes written on these days; of topics only.")
    bytes_out: Decimal | None = Field(description="Bytes read on these days; of topics only.")


class FindingItem(ResponseModel):
    """Something that costs and was not used, as far as that was measured."""

    id: str = Field(description="The same for the same kind and subject.", examples=["66863039a46d3b69"])
    kind: FindingKind
    subject: FindingSubject
    owner: str | None = Field(description="Its owner in the inventory, if one is known.", examples=["sa-123abc"])
    tags: dict[str, str] = Field(examples=[{"team": "payments"}])
    since: date = Field(description="The first measured UTC day without use.")
    last_active: date | None = Field(
        description=f"The last UTC day with use; null if there was none in {LOOK_BACK_DAYS} days."
    )
    evidence: FindingEvidence
    monthly_cost: Sum = Field(
        description=f"Its cost on the last {MONTH_DAYS} days that are calculated, in the currency of the bill."
    )
    avoidable: Literal["none", "partial", "full"] = Field(
        description="How much of the monthly cost would not be charged without it: stored bytes would not, a "
        "cluster's capacity would."
    )
    avoidable_cost: Sum
    why: str
    confidence: Literal["high", "medium", "low"] = Field(
        description="High: every day since was measured. Low: less than half were."
    )
    action: str
    snooze: SnoozeItem | None


class FindingList(PageOf[FindingItem]):
    """One page of the findings, those with the largest cost first."""

    currency: str = Field(examples=["USD"])
    snoozed: int = Field(description="How many findings of these kinds are snoozed.")


router = Routes(prefix="/tenants/{tenant_name}/findings", tags=["Findings"])

_NO_FINDING = {404: "There is no such tenant or finding."}
_NUMBERS: Final = ("monthly_cost", "avoidable_cost", "bytes_in", "bytes_out")
_COLUMNS: Final = (
    *("id", "kind", "subject_type", "subject_id", "subject_name", "cluster_id", "owner", "since", "last_active"),
    *("measured_days", "unmeasured_days", "last_measured", "bytes_in", "bytes_out"),
    *("monthly_cost", "avoidable", "avoidable_cost", "confidence", "why", "action"),
    *("snooze_reason", "snooze_until"),
)

FindingId = Annotated[str, Path(description="The `id` of a finding.", pattern="^[0-9a-f]{16}$")]


def _snoozes(request: FactsRequest, params: FindingsQuery) -> list[Any]:
    """Return what else decides the findings: the day, and what was put off."""
    with request.reading() as connection:
        request.extra = read_snoozes(connection)
    return [params.today.isoformat(), [each.as_json() | {"id": each.finding_id} for each in request.extra.values()]]


@router.get("", response_model=FindingList, needs=Right.READ, files=CSV, keep=True, also=_snoozes)
def list_findings(request: Facts, params: Annotated[FindingsQuery, Query()]) -> Response:
    """List what costs something and was not used, the most expensive first.

    A finding is about days that were measured; what was not measured is not taken for unused. `avoidable` tells how
    much of the cost goes with the subject.
    """
    tenant, today = request.tenant, params.today
    snoozes: Mapping[str, Snooze] = request.extra
    with tenant.store.control.read() as connection:
        found = findings(request.reader, connection, params.min_days, params.kind)
    known = [replace(each, snooze=_holding(snoozes.get(each.id), today)) for each in found]
    shown = [each for each in known if params.state == "all" or (each.snooze is not None) == _wants_snoozed(params)]
    if request.wants_csv:
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


@router.put(
    "/{finding_id}/snooze",
    response_model=SnoozeItem,
    needs=Right.TAG,
    answer="How the finding is put off.",
    problems=_NO_FINDING,
)
def snooze_finding(
    request: Change, caller: CallerDep, finding_id: FindingId, new: Annotated[NewSnooze, Body()]
) -> Response:
    """Put a finding off, with a reason, until a day or for good; an earlier snooze of it is replaced."""
    _require(request, finding_id)
    author = caller.signature(new.created_by)
    with request.writing() as connection:
        snooze = put_snooze(connection, finding_id, new.reason, new.until, author, who=caller.name)
    return json_response(snooze.as_json())


@router.delete(
    "/{finding_id}/snooze",
    needs=Right.TAG,
    answer="The finding is open.",
    only=(*COMMON_STATUSES, 403),
    problems=_NO_FINDING,
)
def wake_finding(request: Change, caller: CallerDep, finding_id: FindingId) -> Response:
    """Put a finding off no longer."""
    if request.context.scope is not None:
        _require(request, finding_id)
    with request.writing() as connection:
        if not remove_snooze(connection, finding_id, who=caller.name):
            raise _missing(finding_id)
    return Response(status_code=204)


def _require(request: ChangeRequest, finding_id: str) -> None:
    """Check that there is a finding with this id in what the caller sees.

    Raises:
        NotFound: there is none.
    """
    with request.reader() as reader, request.tenant.store.control.read() as connection:
        if all(each.id != finding_id for each in findings(reader, connection, min_days=1)):
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
