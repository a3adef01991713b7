"""The audit log."""

from typing import Annotated, Any, Literal

from fastapi import Query
from pydantic import Field

from chargeback.access.caller import Right
from chargeback.api.parameters import CommonParameters, Text
from chargeback.api.routing import Routes
from chargeback.api.tenant_requests import Control
from chargeback.model.days import instants
from chargeback.reports.answers import Instant, PageOf, ResponseModel
from chargeback.store.control.audit import AuditFilter, audit_entries

AuditKind = Literal[
    "tag.created",
    "tag.changed",
    "tag.removed",
    "view.created",
    "view.changed",
    "view.removed",
    "note.created",
    "note.changed",
    "note.removed",
    "category.created",
    "category.changed",
    "category.removed",
    "budget.created",
    "budget.changed",
    "budget.removed",
    "finding.snoozed",
    "finding.woken",
    "anomaly.marked",
    "anomaly.unmarked",
    "statement.acknowledged",
    "statement.disputed",
    "token.created",
    "token.revoked",
    "notifications.retried",
    "policies.applied",
    "policies.withdrawn",
    "run.requested",
    "run.cancelled",
    "request.refused",
    "period.closed",
    "period.reopened",
    "period.sealed",
    "period.requested",
    "period.restated",
    "adjustment.added",
    "adjustment.removed",
    "invoice.saved",
    "invoice.removed",
]


class AuditQuery(CommonParameters):
    """Parameters of the audit log."""

    what: AuditKind | None = Field(default=None, description="Only entries of this kind.")
    who: Text | None = Field(default=None, description="Only what this caller did.", examples=["api"])

    def audit_filter(self, lookback_days: int) -> AuditFilter:
        """Return the filter of the entries; without dates, entries of all days are selected."""
        window = instants(*self.days(lookback_days), self.zone)
        return AuditFilter(
            self.what,
            self.who,
            None if self.start_date is None else window.start,
            None if self.end_date is None else window.end,
        )


class AuditItem(ResponseModel):
    """One change, or one request that was refused."""

    id: str = Field(examples=["17"])
    at: Instant
    who: str = Field(
        description="`api` for a caller of the API, `command line` for a user of the command line.", examples=["api"]
    )
    what: AuditKind
    target: str = Field(
        description="The changed object: `identity/<id>/<key>` or `resource/<id>/<key>`, `view/<id>`, `note/<id>`, "
        "`category/<key>`, `budget/<id>`, `finding/<id>`, `sink/<name>`, `run/<run_id>`, `period/<month>`, "
        "`adjustment/<id>`, `invoice/<month>/<number>`, or method and path.",
        examples=["identity/sa-123abc/team"],
    )
    before: dict[str, Any] | None = Field(description="The values before the change; null if it was created.")
    after: dict[str, Any] | None = Field(description="The values after the change; null if it was removed.")


router = Routes(prefix="/tenants/{tenant_name}/audit", tags=["Audit"])


@router.get("", needs=Right.READ, whole=True)
def list_audit_entries(request: Control, params: Annotated[AuditQuery, Query()]) -> PageOf[AuditItem]:
    """List changes of tags, views, notes and cost categories, closings of months, requests of runs, and refusals,
    with their callers, the newest first.

    Without dates, all entries are listed; they are kept for 400 days."""
    page, wanted = params.paging, params.audit_filter(request.tenant.lookback_days)
    rows, total = audit_entries(request.connection, wanted, offset=page.offset, limit=page.limit)
    return PageOf[AuditItem].of([AuditItem(**{**row, "id": str(row["id"])}) for row in rows], total, page)
