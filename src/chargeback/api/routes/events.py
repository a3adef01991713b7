"""The events of a tenant."""

from typing import Annotated, Any

from fastapi import Query
from pydantic import Field

from chargeback.access.caller import Right
from chargeback.api.parameters import CommonParameters
from chargeback.api.routing import Routes
from chargeback.api.tenant_requests import Control
from chargeback.config.notifications import EventKind
from chargeback.reports.answers import Instant, ResponseModel
from chargeback.store.control.events import read_events


class EventsQuery(CommonParameters):
    """Parameters of the list of events; at most `page_size` are returned."""

    after: int = Field(default=0, ge=0, le=2**31 - 1, description="Only events after this `id`.", examples=[17])
    kind: EventKind | None = Field(default=None, description="Only these.")


class EventItem(ResponseModel):
    """Something that has happened."""

    id: int = Field(description="Later events have larger ids.")
    at: Instant
    kind: EventKind
    subject: str = Field(description="The object of the event.", examples=["period/2026-10"])
    body: dict[str, Any] = Field(
        description="Of a closed, reopened or sealed month its `period_id`, the number (`n`) and the digest of the "
        "receipt, of a closed month also what was `posted`; of a correction the month to which it was posted, "
        "`charge_period` and `amount`, as decimal texts in `currency`; of a budget the threshold (`on`, `percent`), "
        "its `amount`, the costs `to_date` and the `expected` costs; of an anomaly its `sentence` and `impact`, an "
        "estimate; of a sink that cannot be reached the `error`, and the `kind` and `subject` of the event that was "
        "not delivered."
    )


class EventList(ResponseModel):
    """Events, the first one first."""

    items: list[EventItem]
    last: int = Field(description="`after` of the next request: the `id` of the last item, or the sent `after`.")


router = Routes(prefix="/tenants/{tenant_name}/events", tags=["Events"])


@router.get("", needs=Right.READ, whole=True)
def list_events(request: Control, params: Annotated[EventsQuery, Query()]) -> EventList:
    """List events in order. Each was recorded in the transaction that it reports: a client that continues after `last`
    misses no event, and gets none twice. Events are kept for 400 days. Dates, `timezone` and `page` are ignored."""
    rows = read_events(request.connection, after=params.after, kind=params.kind, limit=params.paging.limit)
    items = [EventItem.model_validate(dict(row)) for row in rows]
    return EventList(items=items, last=items[-1].id if items else params.after)
