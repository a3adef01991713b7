"""The sinks of notifications, and whether deliveries to them work."""

from dataclasses import asdict
from typing import Annotated, Literal, Self

from fastapi import Path, Query
from pydantic import Field

from chargeback.access.caller import Right
from chargeback.api.dependencies import CallerDep
from chargeback.api.parameters import CommonParameters
from chargeback.api.problems import NotFound
from chargeback.api.routing import Routes
from chargeback.api.tenant_requests import Change, ChangeRequest, Control
from chargeback.config.notifications import AlertmanagerSettings, EventKind, SinkSettings
from chargeback.notifications.alerts import try_alert
from chargeback.notifications.message import try_message
from chargeback.notifications.senders import send, send_alerts
from chargeback.reports.answers import Instant, PageOf, ResponseModel
from chargeback.store.control.audit import NOTIFICATIONS_RETRIED, AuditEntry, record
from chargeback.store.control.deliveries import SinkState, retry_dead, sink_states, subject_of

SinkType = Literal["webhook", "slack", "smtp", "alertmanager"]
_SinkPath = Annotated[str, Path(description="Its name in the configuration.", examples=["team-chat"])]


class SinkItem(ResponseModel):
    """A sink of notifications, and the state of its messages."""

    name: str = Field(examples=["team-chat"])
    type: SinkType
    kinds: list[EventKind] | None = Field(description="The kinds of events that it accepts; null for all.")
    pending: int = Field(description="Messages that are not delivered yet.")
    delivered: int = Field(description="Delivered messages about events that are still kept.")
    dead: int = Field(description="Messages that were given up.")
    oldest_pending: Instant | None = Field(description="The time of the oldest event that is not delivered yet.")
    last_error: str | None = Field(description="The error of the last failed attempt.")

    @classmethod
    def of(cls, name: str, sink: SinkSettings, state: SinkState) -> Self:
        """Return a sink for a response, without its address and its secrets."""
        kinds = None if sink.accepted is None else list(sink.accepted)
        return cls(name=name, type=sink.type, kinds=kinds, **asdict(state))


class TestOutcome(ResponseModel):
    """The result of a test message to a sink."""

    delivered: bool
    error: str | None = Field(description="Why it was not delivered; null if it was.")


class RetriedMessages(ResponseModel):
    """The messages that are tried again."""

    retried: int = Field(description="The number of messages that had been given up.")


router = Routes(prefix="/tenants/{tenant_name}/notifications", tags=["Events"])


@router.get("", needs=Right.READ, whole=True)
def list_sinks(request: Control, params: Annotated[CommonParameters, Query()]) -> PageOf[SinkItem]:
    """List the sinks of notifications, with the numbers of pending, delivered and given-up messages. An Alertmanager
    gets the conditions that hold, whose deliveries are not counted. Dates and `timezone` are ignored."""
    states = sink_states(request.connection)
    found = [
        SinkItem.of(name, sink, states.get(name, SinkState())) for name, sink in sorted(request.tenant.sinks.items())
    ]
    return PageOf[SinkItem].cut(found, params.paging)


@router.post(
    "/{sink_name}/test",
    needs=Right.ADMIN,
    whole=True,
    answer="The result of the test message.",
    problems={404: "There is no such tenant or sink."},
)
def try_sink(request: Change, sink_name: _SinkPath) -> TestOutcome:
    """Send a test message, immediately and without retries."""
    sink = _sink(request, sink_name)
    tenant = request.tenant.tenant_name
    if isinstance(sink, AlertmanagerSettings):
        outcome = send_alerts(sink, [try_alert(tenant, sink_name, request.now)])
    else:
        outcome = send(sink, try_message(tenant, sink_name, request.now, None), request.now)
    return TestOutcome(delivered=outcome.error is None, error=outcome.error)


@router.post(
    "/{sink_name}/retry",
    needs=Right.ADMIN,
    whole=True,
    answer="The messages are sent again soon.",
    problems={404: "There is no such tenant or sink."},
)
def retry_messages(request: Change, caller: CallerDep, sink_name: _SinkPath) -> RetriedMessages:
    """Send the messages that were given up again, with the same ids."""
    _sink(request, sink_name)
    with request.writing() as connection:
        count = retry_dead(connection, sink_name, request.now)
        entry = AuditEntry(NOTIFICATIONS_RETRIED, subject_of(sink_name), None, {"retried": count})
        record(connection, caller.name, [entry])
    return RetriedMessages(retried=count)


def _sink(request: ChangeRequest, name: str) -> SinkSettings:
    sink = request.tenant.sinks.get(name)
    if sink is None:
        raise NotFound(f"There is no sink {name}; the names are in `notifications` of the configuration.")
    return sink
