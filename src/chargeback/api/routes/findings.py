"""Findings: resources and identities that have costs but are not used; findings can be snoozed."""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from fastapi import Body, Path, Query
from pydantic import Field
from starlette.responses import Response

from chargeback.access.caller import Right
from chargeback.api.dependencies import CallerDep
from chargeback.api.documentation import COMMON_STATUSES
from chargeback.api.parameters import Author, CommonParameters, Day, Note, StrictModel
from chargeback.api.problems import NotFound
from chargeback.api.responses import table_response
from chargeback.api.routing import CSV, Routes
from chargeback.api.tenant_requests import Change, ChangeRequest, Facts, FactsRequest
from chargeback.reports.findings import LOOK_BACK_DAYS, FindingEvidence, FindingKind, FindingList, SnoozeItem, findings
from chargeback.store.control.snoozes import Snooze, put_snooze, read_snoozes, remove_snooze


class FindingsQuery(CommonParameters):
    """Parameters of the findings, which are about the last calculated days; date parameters are ignored."""

    kind: list[FindingKind] = Field(default=[], description="Only findings of this kind, repeatable.")
    min_days: int = Field(
        default=14,
        ge=1,
        le=LOOK_BACK_DAYS,
        description="The minimum number of measured days since the subject was last used.",
    )
    state: Literal["open", "snoozed", "all"] = Field(
        default="open", description="Only findings that are not snoozed, only those that are, or all."
    )


class NewSnooze(StrictModel):
    """The reason for which a finding is snoozed, and until when."""

    reason: Note = Field(description="An explanation for later readers.", examples=["Kept for the audit of 2026"])
    until: Day | None = Field(
        default=None, description="The UTC day on which the finding is open again. Default: never."
    )
    created_by: Author = Field(default="api", description="Who snoozed the finding.")


router = Routes(prefix="/tenants/{tenant_name}/findings", tags=["Findings"])

_NO_FINDING = {404: "There is no such tenant or finding."}
_COLUMNS: Final = (
    {"id": "id", "kind": "kind"}
    | {f"subject_{name}": f"subject.{name}" for name in ("type", "id", "name")}
    | {"cluster_id": "subject.cluster_id", "owner": "owner", "since": "since", "last_active": "last_active"}
    | {name: f"evidence.{name}" for name in FindingEvidence.model_fields}
    | {name: name for name in ("monthly_cost", "avoidable", "avoidable_cost", "confidence", "why", "action")}
    | {"snooze_reason": "snooze.reason", "snooze_until": "snooze.until"}
)

FindingId = Annotated[str, Path(description="The `id` of a finding.", pattern="^[0-9a-f]{16}$")]


def _snoozes(request: FactsRequest, params: FindingsQuery) -> list[Any]:
    """Return the further values that findings depend on: the day, and the snoozes."""
    with request.reading() as connection:
        request.extra = read_snoozes(connection)
    return [params.today.isoformat(), [each.as_json() | {"id": each.finding_id} for each in request.extra.values()]]


@router.get("", needs=Right.READ, files=CSV, keep=True, also=_snoozes)
def list_findings(request: Facts, params: Annotated[FindingsQuery, Query()]) -> FindingList | Response:
    """List resources and identities that have costs but were not used, the most expensive first.

    Only measured days count: what was not measured is not considered unused. `avoidable` is the part of the cost that
    would be saved without the subject.
    """
    tenant, today = request.tenant, params.today
    snoozes: Mapping[str, Snooze] = request.extra
    with tenant.store.control.read() as connection:
        found = findings(request.reader, connection, params.min_days, params.kind)
    holding = {key: SnoozeItem.like(each) for key, each in snoozes.items() if each.holds_on(today)}
    known = [each.model_copy(update={"snooze": holding.get(each.id)}) for each in found]
    shown = [each for each in known if params.state in {"all", "open" if each.snooze is None else "snoozed"}]
    if request.wants_csv:
        return table_response("findings.csv", _COLUMNS, shown)
    snoozed = sum(each.snooze is not None for each in known)
    return FindingList.cut(shown, params.paging, currency=tenant.currency, snoozed=snoozed)


@router.put(
    "/{finding_id}/snooze",
    needs=Right.TAG,
    answer="The snooze of the finding.",
    problems=_NO_FINDING,
)
def snooze_finding(
    request: Change, caller: CallerDep, finding_id: FindingId, new: Annotated[NewSnooze, Body()]
) -> SnoozeItem:
    """Snooze a finding, with a reason, until a day or permanently; an earlier snooze of it is replaced."""
    _require(request, finding_id)
    author = caller.signature(new.created_by)
    with request.writing() as connection:
        snooze = put_snooze(connection, finding_id, new.reason, new.until, author, who=caller.name)
    return SnoozeItem.like(snooze)


@router.delete(
    "/{finding_id}/snooze",
    needs=Right.TAG,
    answer="The finding is open.",
    only=(*COMMON_STATUSES, 403),
    problems=_NO_FINDING,
)
def wake_finding(request: Change, caller: CallerDep, finding_id: FindingId) -> Response:
    """Remove the snooze of a finding."""
    if not request.access.sees_everything:
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
    with request.facts_reader() as reader, request.tenant.store.control.read() as connection:
        if all(each.id != finding_id for each in findings(reader, connection, min_days=1)):
            raise _missing(finding_id)


def _missing(finding_id: str) -> NotFound:
    return NotFound(f"There is no finding {finding_id}, or it is not snoozed.")
