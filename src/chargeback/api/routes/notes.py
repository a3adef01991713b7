"""Notes: remarks on days, for all who read the same costs.

Callers who see the whole tenant see and change all of them; callers with a scope, those that were written within the
same scope, because a text may name data outside other scopes. Writing needs the right ``tag``, like marking anomalies:
both describe costs for other readers, which is more than to ``read``, and change no amount.
"""

from datetime import date, timedelta
from typing import Annotated, Any

from fastapi import Body, Path, Query
from pydantic import AfterValidator, Field, StringConstraints, ValidationInfo, field_validator
from sqlalchemy import Connection
from starlette.responses import Response

from chargeback.access.caller import Right, TenantAccess
from chargeback.api.dependencies import CallerDep
from chargeback.api.documentation import COMMON_STATUSES
from chargeback.api.parameters import Author, CommonParameters, Day, StrictModel, visible
from chargeback.api.preconditions import Preconditions, PreconditionsDep
from chargeback.api.problems import Conflict, NotFound
from chargeback.api.responses import json_response
from chargeback.api.routing import Routes
from chargeback.api.selecting import NamedPeriodQuery
from chargeback.api.tenant_requests import CACHE_CONTROL, Change, Control, Versioned
from chargeback.model.texts import LINE, is_line
from chargeback.reports.answers import Instant, PageOf, ResponseModel
from chargeback.store.control import notes as store
from chargeback.store.control.catalogue import lock_tenant
from chargeback.store.control.notes import NoteWrite, StoredNote
from chargeback.store.control.revisions import read_revisions

#: The most notes that a caller sees.
MAX_NOTES = 10_000
MAX_LENGTH = 500
#: What a chart can still mark.
_LONGEST = timedelta(days=366)


def _line(text: str) -> str:
    if not is_line(visible(text)):
        raise ValueError("should be one line: without line breaks, tabs and other control characters")
    return text


NoteText = Annotated[
    str,
    StringConstraints(min_length=1, max_length=MAX_LENGTH),
    AfterValidator(_line),
    Field(
        description=f"One line of plain text, of at most {MAX_LENGTH} characters.",
        examples=["Load test of search"],
        json_schema_extra={"pattern": LINE},
    ),
]


class NoteBody(StrictModel):
    """What a note shall be."""

    start_date: Day = Field(description="The first day.", examples=["2026-11-14"])
    end_date: Day | None = Field(
        default=None, description="The last day, a year later at most. Default: `start_date`.", examples=["2026-11-15"]
    )
    text: NoteText

    @field_validator("end_date")
    @classmethod
    def _after_start(cls, value: date | None, info: ValidationInfo) -> date | None:
        first = info.data.get("start_date")
        if value is not None and first is not None and not timedelta() <= value - first <= _LONGEST:
            raise ValueError(f"should be between start_date, {first}, and {_LONGEST.days} days later")
        return value

    @property
    def write(self) -> NoteWrite:
        """The note as the store knows it."""
        return NoteWrite(self.start_date, self.end_date or self.start_date, self.text)


class NewNote(NoteBody):
    """A note to write."""

    created_by: Author = Field(default="api", description="Who writes it.")


class NoteItem(ResponseModel):
    """A note on days."""

    id: str = Field(examples=["3"])
    start_date: date = Field(description="The first day.")
    end_date: date = Field(description="The last day.")
    text: str = Field(examples=["Load test of search"])
    version: int = Field(description="From 1, one more with each change.", examples=[1])
    created_by: str = Field(examples=["alice"])
    created_at: Instant
    changed_by: str = Field(description="Who wrote this version.", examples=["alice"])
    changed_at: Instant

    @classmethod
    def of(cls, note: StoredNote) -> "NoteItem":
        """Return a stored note as responses have it."""
        return cls.like(note, id=str(note.id))


router = Routes(prefix="/tenants/{tenant_name}/notes", tags=["Notes"])

_NO_NOTE = {404: "There is no such tenant or note."}
_EDITS = {412: "Someone else was faster; `detail` says who.", 428: "The note is there: send its ETag as `If-Match`."}

NoteId = Annotated[str, Path(description="The `id` of a note.", pattern="^[0-9]{1,9}$", examples=["3"])]


@router.get("", needs=Right.READ)
def list_notes(request: Control, params: Annotated[NamedPeriodQuery, Query()]) -> PageOf[NoteItem]:
    """List the notes on days of a period, by their first day; within a scope, those that were written within the same
    one."""
    last = read_revisions(request.connection).last_calculated
    days = params.chosen_period(request.tenant.lookback_days, last).day_range
    found = store.list_notes(request.connection, days, _scope(request.access))
    return PageOf[NoteItem].cut([NoteItem.of(each) for each in found], params.paging)


@router.get("/{note_id}", response_model=NoteItem, needs=Right.READ, problems=_NO_NOTE)
def get_note(request: Versioned, note_id: NoteId, _params: Annotated[CommonParameters, Query()]) -> Response:
    """Return a note. Its ETag is what `If-Match` of a change names."""
    return _answer(_find(request.connection, request.access, note_id))


@router.post(
    "",
    response_model=NoteItem,
    status_code=201,
    needs=Right.TAG,
    answer="The new note.",
    problems={409: f"There are {MAX_NOTES:,} notes already."},
)
def create_note(request: Change, caller: CallerDep, new: Annotated[NewNote, Body()]) -> Response:
    """Write a note on a day or on several, also on days to come. Within a scope, it is for those with the same scope
    and for those who see the whole bill."""
    scope = _scope(request.access)
    author = caller.signature(new.created_by)
    with request.writing() as connection:
        if store.lock_notes(connection, scope) >= MAX_NOTES:
            raise Conflict(f"There are {MAX_NOTES:,} notes already; remove some first.")
        note = store.create_note(connection, new.write, author, scope, who=caller.name)
    return _answer(note, status=201)


@router.put(
    "/{note_id}",
    response_model=NoteItem,
    needs=Right.TAG,
    answer="The changed note.",
    problems={**_NO_NOTE, **_EDITS},
)
def change_note(
    request: Change,
    caller: CallerDep,
    note_id: NoteId,
    preconditions: PreconditionsDep,
    new: Annotated[NoteBody, Body()],
) -> Response:
    """Replace the version of a note that `If-Match` names. The audit log keeps what it was."""
    with request.writing() as connection:
        present = _to_edit(connection, request.access, note_id, preconditions)
        note = store.change_note(connection, present, new.write, who=caller.name)
    return _answer(note)


@router.delete(
    "/{note_id}",
    needs=Right.TAG,
    answer="There is no such note any more.",
    only=(*COMMON_STATUSES, 403),
    problems={**_NO_NOTE, **_EDITS},
)
def remove_note(request: Change, caller: CallerDep, note_id: NoteId, preconditions: PreconditionsDep) -> Response:
    """Remove the version of a note that `If-Match` names. The audit log keeps what it was."""
    with request.writing() as connection:
        present = _to_edit(connection, request.access, note_id, preconditions)
        store.remove_note(connection, present, who=caller.name)
    return Response(status_code=204)


def _scope(access: TenantAccess) -> str | None:
    """Return whose notes the caller sees: those of the scope with this digest, or, for None, everybody's."""
    return None if access.scope is None else access.scope.digest


def _find(connection: Connection, access: TenantAccess, note_id: str) -> StoredNote:
    note = store.find_note(connection, int(note_id), _scope(access))
    if note is None:
        raise NotFound(f"There is no note {note_id}.")
    return note


def _to_edit(connection: Connection, access: TenantAccess, note_id: str, preconditions: Preconditions) -> StoredNote:
    """Return the version of a note that is changed, locked until the transaction ends."""
    lock_tenant(connection)
    present = _find(connection, access, note_id)
    preconditions.check(f"note {present.id}", present)
    return present


def _answer(note: StoredNote, status: int = 200) -> Response:
    headers: dict[str, Any] = {"ETag": note.etag, "Cache-Control": CACHE_CONTROL}
    return json_response(NoteItem.of(note), status=status, headers=headers)
