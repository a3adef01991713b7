"""Query parameters and bodies: parsing and validation that reports all mistakes in a request together.

A model per endpoint defines its parameters; the OpenAPI document is generated from the same models. Cross-checks
between parameters run even if single parameters are invalid, so that one response reports all mistakes.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import lru_cache
from typing import Annotated, Any, ClassVar, TypeVar, cast, get_origin
from zoneinfo import ZoneInfo

from fastapi import Depends, Request
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    StringConstraints,
    ValidationError,
)
from pydantic_core import ErrorDetails, from_json

from chargeback.api.problems import InvalidParameter, InvalidRequest
from chargeback.model.accounting import PERIOD_ID
from chargeback.model.days import InstantRange, instants, parse_instant, utc_now, zone_named
from chargeback.model.texts import VISIBLE, is_visible
from chargeback.store.queries.paging import Page

JSON_TYPE = "application/json"
CSV_TYPE = "text/csv"

TAG_PREFIX = "tag:"
TAG_KEY = r"^[A-Za-z0-9][A-Za-z0-9_.:-]{0,62}$"
#: The name of a parameter that filters by a tag, and of a column that groups by one.
TAG_PARAMETER = TAG_KEY.replace("^", f"^{TAG_PREFIX}")
CATEGORY_PREFIX = "category:"
CATEGORY_KEY = r"^[A-Za-z][A-Za-z0-9_-]{0,63}$"
#: The name of a parameter that filters by a cost category.
CATEGORY_PARAMETER = CATEGORY_KEY.replace("^", f"^{CATEGORY_PREFIX}")
#: The name of a column that groups by a cost category: by its values, or by their parents some levels above.
CATEGORY_COLUMN = CATEGORY_PARAMETER.replace("$", "(@[0-9]{1,2})?$")
#: The prefix of the name of a filter that excludes rows.
NOT_PREFIX = "not."
#: The fields of a model that filters by ``tag:<key>``, by ``category:<key>`` and by ``not.<column>``.
TAGS_FIELD, CATEGORIES_FIELD, EXCLUDED_FIELD = "tags", "categories", "excluded"
#: The filters whose parameter names contain a key: the prefix of the name, and the field.
KEYED_FILTERS = {TAG_PREFIX: TAGS_FIELD, CATEGORY_PREFIX: CATEGORIES_FIELD}
#: The names of these fields are therefore no names of filters.
NO_FILTERS = frozenset(
    {EXCLUDED_FIELD, *KEYED_FILTERS.values(), *(f"{NOT_PREFIX}{field}" for field in KEYED_FILTERS.values())}
)

_UNKNOWN_PARAMETER = "is not a parameter of this endpoint"
# A repeated parameter counts once: only names matter here.
_ENTRY = re.compile(r"\[\d+\]$")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
# The range of all timestamps; beyond it, arithmetic with time zones overflows.
_FIRST_DAY = date(1970, 1, 2)
_LAST_DAY = date(2999, 12, 30)
# Entries besides the zones on some machines: the machine's own zone, and copies with leap seconds.
_MACHINE_ZONES = re.compile(r"localtime|posixrules|(posix|right)/.*")


def _date(value: object) -> date:
    if isinstance(value, date):
        return value
    if not isinstance(value, str) or not _DATE.fullmatch(value):
        raise ValueError("should be a date such as 2026-01-31")
    try:
        return date.fromisoformat(value)
    except ValueError:
        raise ValueError("should be a date of the calendar, such as 2026-01-31") from None


def _instant(value: object) -> datetime:
    if isinstance(value, datetime):
        return value
    try:
        return parse_instant(str(value))
    except OverflowError:
        raise ValueError("should be a date and time within the years 1 to 9999") from None


@lru_cache(maxsize=1024)
def _zone(name: str) -> str:
    if _MACHINE_ZONES.fullmatch(name):
        raise ValueError(f"{name[:80]!r} is not an IANA time zone, such as Europe/Berlin")
    zone_named(name)
    return name


def _plain(text: str) -> str:
    if "\x00" in text:
        raise ValueError("must not contain the character NUL")
    return text


def visible(text: str) -> str:
    """Return a text that is not blank.

    Raises:
        ValueError: it is blank.
    """
    if not is_visible(_plain(text)):
        raise ValueError("should not be blank")
    return text


_SHOWN_AS_PLAIN = Field(json_schema_extra={"pattern": r"^[^\u0000]*$"})

Day = Annotated[date, BeforeValidator(_date)]
When = Annotated[datetime, BeforeValidator(_instant)]
Zone = Annotated[
    str,
    AfterValidator(_zone),
    Field(examples=["Europe/Berlin"], json_schema_extra={"format": "iana-time-zone"}),
]
#: The longest id of a resource: a topic's is that of its cluster, ``:topic:``, and a name of up to 249 characters.
MAX_ID_LENGTH = 512
#: The maximum number of mistakes of a request that are listed. Describing hundreds of thousands would take minutes, in
#: which no other request is served.
MOST_MISTAKES = 1_000
#: A type, a name, a tag's value, or the id of an identity.
Text = Annotated[str, StringConstraints(min_length=1, max_length=255), AfterValidator(_plain), _SHOWN_AS_PLAIN]
#: An amount as a client writes it.
AmountText = Annotated[str, StringConstraints(pattern=r"^-?[0-9]{1,26}(\.[0-9]{1,12})?$")]
#: A text for people that is not blank.
Note = Annotated[
    str,
    StringConstraints(min_length=1, max_length=255),
    AfterValidator(visible),
    Field(json_schema_extra={"pattern": VISIBLE}),
]
#: A text that may be empty, which stands for no value at all.
OptionalText = Annotated[str, StringConstraints(max_length=255), AfterValidator(_plain), _SHOWN_AS_PLAIN]
#: Who writes something, as the request says; it counts only if callers are not identified.
Author = Annotated[Note, Field(examples=["alice"])]
#: Why something is changed; may be empty, which stands for no reason.
Reason = Annotated[
    str | None,
    StringConstraints(max_length=2000),
    AfterValidator(lambda text: text and visible(text)),
    Field(examples=["CHG-42"], json_schema_extra={"pattern": f"^$|{VISIBLE}"}),
]
#: The id of a resource, an identity or another entity of the inventory.
Id = Annotated[str, StringConstraints(min_length=1, max_length=MAX_ID_LENGTH), AfterValidator(_plain), _SHOWN_AS_PLAIN]
SearchText = Annotated[str, StringConstraints(max_length=MAX_ID_LENGTH), AfterValidator(_plain), _SHOWN_AS_PLAIN]
#: A month by its id.
PeriodId = Annotated[
    str,
    StringConstraints(pattern=PERIOD_ID),
    Field(description="The month, of UTC days.", examples=["2026-10"]),
]
TagKey = Annotated[str, StringConstraints(pattern=TAG_KEY)]
CategoryKey = Annotated[str, StringConstraints(pattern=CATEGORY_KEY)]


class StrictModel(BaseModel):
    """A model that rejects unknown fields. What validates it is built at its first use."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    #: Whether there are parameters `tag:<key>`, `category:<key>` and `not.<column>`, for the fields ``tags``,
    #: ``categories`` and ``excluded``.
    takes_filters: ClassVar[bool] = False

    #: The parameters of a list that the file of the same rows, at the path with ``.csv``, does not have.
    of_lists: ClassVar[frozenset[str]] = frozenset()

    #: Whether a body of the model may be CSV, for :meth:`from_csv`, instead of JSON.
    takes_csv: ClassVar[bool] = False

    @classmethod
    def from_csv(cls, content: bytes) -> "StrictModel":
        """Return the model of a body that is CSV.

        Raises:
            InvalidRequest: the body is invalid.
        """
        raise NotImplementedError

    @classmethod
    def cross_checks(cls, raw: dict[str, Any], now: datetime) -> list[InvalidParameter]:  # noqa: ARG003
        """Check rules that span several fields, at ``now``; fields that are invalid themselves are ignored."""
        return []


def _no_number(value: object) -> object:
    if isinstance(value, int) and not isinstance(value, bool):
        raise ValueError("should be true or false")  # noqa: TRY004 - pydantic reports only ValueError
    return value


class Restating(StrictModel):
    """A change that may move amounts of closed months. Subclasses have a field ``reason``."""

    restate_closed: Annotated[bool, BeforeValidator(_no_number)] = Field(
        default=False,
        description="Make the change even if it moves amounts of closed months: it is then posted to the first open "
        "month, as a correction. Needs a `reason`.",
    )

    @classmethod
    def cross_checks(cls, raw: dict[str, Any], now: datetime) -> list[InvalidParameter]:
        """Check that there is a reason."""
        errors = super().cross_checks(raw, now)
        if raw.get("restate_closed") in (True, "true", "1") and not raw.get("reason"):
            errors.append(InvalidParameter("reason", "is needed with restate_closed"))
        return errors


def check_order(raw: Mapping[str, Any], usual_end: date | None = None) -> list[InvalidParameter]:
    """Check that the sent start is not after the sent end. A day that is missing or invalid, and has no usual value, is
    ignored."""
    start, end = _if_valid(_date, raw.get("start_date")), _if_valid(_date, raw.get("end_date")) or usual_end
    if start is None or end is None or start <= end:
        return []
    return [InvalidParameter("start_date", f"should not be after the end, {end}")]


class DateRangeParameters(StrictModel):
    """A range of days in a time zone; the default end is the day of the request."""

    start_date: Day | None = Field(
        default=None, description="First day, inclusive. Default: `lookback_days` of the tenant before the end."
    )
    end_date: Day | None = Field(default=None, description="Last day, inclusive. Default: today in `timezone`.")
    timezone: Zone = Field(default="UTC", description="IANA time zone that defines where days start and end.")
    _read_at: datetime = PrivateAttr(default_factory=utc_now)

    def model_post_init(self, context: Any) -> None:
        """Store the time of the request, which is the context of the validation."""
        if isinstance(context, datetime):
            self._read_at = context

    @property
    def zone(self) -> ZoneInfo:
        """Return the time zone."""
        return zone_named(self.timezone)

    @property
    def today(self) -> date:
        """Return the day of the request in the time zone."""
        return _day_of(self._read_at, self.timezone)

    def days(self, lookback_days: int) -> tuple[date, date]:
        """Return the first and last day, with defaults."""
        end = min(max(self.end_date or self.today, _FIRST_DAY), _LAST_DAY)
        start = self.start_date or max(end - timedelta(days=lookback_days), _FIRST_DAY)
        return min(max(start, _FIRST_DAY), _LAST_DAY), end

    def window(self, lookback_days: int) -> InstantRange:
        """Return the start and end of these days as timestamps."""
        return instants(*self.days(lookback_days), self.zone)

    @classmethod
    def cross_checks(cls, raw: dict[str, Any], now: datetime) -> list[InvalidParameter]:
        """Check that the start is not after the end."""
        if raw.get("start_date") is None:
            return []
        return check_order(raw, _day_of(now, raw["timezone"] if _if_valid(_zone, raw.get("timezone")) else "UTC"))


class CommonParameters(DateRangeParameters):
    """The query parameters that every GET accepts."""

    page: int = Field(default=1, ge=1, description="Page number, from 1.")
    page_size: int = Field(default=100, ge=1, le=1000, description="Entries per page.")

    @property
    def paging(self) -> Page:
        """Return the page as offset and limit."""
        return Page((self.page - 1) * self.page_size, self.page_size)


AsOf = Annotated[
    When | None,
    Field(
        description="The rows as they were at this instant: for each day, the rows of the revision that was in force "
        "then, and the bill from which it was calculated. Names are the present ones. Default: the present "
        "rows.",
        examples=["2026-01-31T12:00:00Z"],
    ),
]


class FactsParameters(CommonParameters):
    """Query parameters of endpoints that read facts, the present ones or as of an instant."""

    as_of: AsOf = None


def tag_pair(raw: dict[str, Any]) -> list[InvalidParameter]:
    """Check that a tag's value is sent together with its key."""
    if raw.get("tag_value") is not None and raw.get("tag_key") is None:
        return [InvalidParameter("tag_value", "requires tag_key")]
    return []


def instant_if_valid(value: object) -> datetime | None:
    """Return the timestamp in a sent text, or None if it is invalid."""
    instant: datetime | None = _if_valid(_instant, value)
    return instant


def day_if_valid(value: object) -> date | None:
    """Return the date in a sent text, or None if it is invalid."""
    day: date | None = _if_valid(_date, value)
    return day


def is_tag_key(text: str) -> bool:
    """Return whether ``text`` can be the key of a tag."""
    return re.fullmatch(TAG_KEY.strip("^$"), text) is not None


def _day_of(instant: datetime, zone: str) -> date:
    return instant.astimezone(zone_named(zone)).date()


def _if_valid(parse: Callable[[Any], Any], value: object) -> Any:
    try:
        return parse(value) if isinstance(value, str) else None
    except ValueError:
        return None


Q = TypeVar("Q", bound=StrictModel)
B = TypeVar("B", bound=StrictModel)


class NoParameters(StrictModel):
    """An endpoint without query parameters."""


def query_reader(model: type[Q]) -> Any:
    """Return ``model`` with the dependency that reads a request's query parameters."""

    async def _read(request: Request) -> Q:
        is_file = request.url.path.endswith(".csv")
        return read_query(model, request.query_params.multi_items(), _now(request), is_file=is_file)

    return Annotated[model, Depends(_read)]


def read_query(model: type[Q], sent: Sequence[tuple[str, str]], now: datetime, *, is_file: bool = False) -> Q:
    """Return the parameters of a query string, read at ``now``; ``is_file`` says that they select a file.

    Raises:
        InvalidRequest: a parameter is invalid.
    """
    raw, errors = _collect(model, sent, model.of_lists if is_file else frozenset())
    wrong: list[InvalidParameter] = []
    value = _validated(wrong, lambda: model.model_validate(raw, context=now))
    errors.extend(dict.fromkeys(InvalidParameter(_ENTRY.sub("", each.parameter), each.message) for each in wrong))
    errors.extend(model.cross_checks(raw, now))
    if errors or value is None:
        raise InvalidRequest(errors)
    return value


def body_reader(model: type[B], *, optional: bool = False, with_query: bool = False) -> Any:
    """Return ``model`` with the dependency that reads a request's body; ``optional`` bodies may be absent. With
    ``with_query`` another dependency reads the query parameters; without, they are errors."""

    async def _read(request: Request) -> B:
        sent = SentBody(await request.body(), request.headers.get("content-type", ""))
        parameters = [] if with_query else request.query_params.multi_items()
        if sent.is_csv and model.takes_csv:
            require_no_parameters(parameters)
            return cast("B", model.from_csv(sent.content))
        return read_body(model, parameters, sent, _now(request), optional=optional)

    return Annotated[model, Depends(_read)]


def no_parameters() -> Any:
    """Return the dependency of an endpoint that takes neither parameters nor a body."""

    async def _read(request: Request) -> None:
        require_no_parameters(request.query_params.multi_items())

    return Depends(_read)


def require_no_parameters(sent: Sequence[tuple[str, str]]) -> None:
    """Check that a query string is empty.

    Raises:
        InvalidRequest: it is not.
    """
    _, errors = _collect(NoParameters, sent)
    if errors:
        raise InvalidRequest(errors)


@dataclass(frozen=True, slots=True)
class SentBody:
    """The bytes of a body and their declared content type."""

    content: bytes
    content_type: str

    @property
    def is_json(self) -> bool:
        """Return whether the content type is JSON."""
        return self._media_type == JSON_TYPE

    @property
    def is_csv(self) -> bool:
        """Return whether the content type is CSV, which browsers do not send for any page without asking first."""
        return self._media_type == CSV_TYPE

    @property
    def _media_type(self) -> str:
        return self.content_type.partition(";")[0].strip().lower()


def read_body(model: type[B], query: Sequence[tuple[str, str]], sent: SentBody, now: datetime, *, optional: bool) -> B:
    """Read a JSON body at ``now``. It must be declared as JSON: browsers send some other types for any web page without
    a preflight request.

    Raises:
        InvalidRequest: it is invalid, or there are query parameters.
    """
    _, errors = _collect(NoParameters, query)
    if sent.content and not sent.is_json:
        raise InvalidRequest([*errors, InvalidParameter("Content-Type", f"should be {JSON_TYPE}")])
    content = sent.content or (b"{}" if optional else b"")
    value = _validated(errors, lambda: model.model_validate_json(content, context=now))
    errors.extend(model.cross_checks(_object(content), now))
    if errors or value is None:
        raise InvalidRequest(errors)
    return value


def _now(request: Request) -> datetime:
    now: datetime = request.app.state.services.clock()
    return now


def _object(content: bytes) -> dict[str, Any]:
    try:
        value = from_json(content)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _collect(
    model: type[StrictModel], sent: Sequence[tuple[str, str]], without: frozenset[str] = frozenset()
) -> tuple[dict[str, Any], list[InvalidParameter]]:
    """Return the sent values by name, as lists where the model has lists. Unknown names, the names in ``without``, and
    repeated names are errors."""
    values: dict[str, list[str]] = {}
    for name, value in sent:
        values.setdefault(name, []).append(value)
    raw: dict[str, Any] = {}
    errors = []
    for name, values_of_name in values.items():
        field = model.model_fields.get(name)
        if model.takes_filters and name.startswith((*KEYED_FILTERS, NOT_PREFIX)) and name not in NO_FILTERS:
            nest_filter(raw, name, values_of_name)
        elif field is None or name in NO_FILTERS or name in without:
            errors.append(InvalidParameter(name[:80], _UNKNOWN_PARAMETER))
        elif get_origin(field.annotation) is list:
            raw[name] = values_of_name
        elif len(values_of_name) > 1:
            errors.append(InvalidParameter(name, "should be given only once"))
        else:
            raw[name] = values_of_name[0]
    return raw, errors


def nest_filter(raw: dict[str, Any], name: str, given: object) -> None:
    """Store the value of ``tag:<key>``, ``category:<key>``, ``not.<column>`` or ``not.tag:<key>`` in the field of the
    model."""
    if name.startswith(NOT_PREFIX):
        raw, name = raw.setdefault(EXCLUDED_FIELD, {}), name.removeprefix(NOT_PREFIX)
    for prefix, field in KEYED_FILTERS.items():
        if name.startswith(prefix):
            raw, name = raw.setdefault(field, {}), name.removeprefix(prefix)
            break
    raw[name] = given


def _validated(errors: list[InvalidParameter], validate: Callable[[], B]) -> B | None:
    try:
        return validate()
    except ValidationError as error:
        if (count := error.error_count()) > MOST_MISTAKES:
            message = f"has {count:,} mistakes, too many to list; send a part of it to see them"
            errors.append(InvalidParameter("request", message))
            return None
        errors.extend(_invalid(each) for each in error.errors(include_url=False, include_context=False))
        return None


def _invalid(error: ErrorDetails) -> InvalidParameter:
    place = ""
    for part in _as_sent(error["loc"]):
        place += f"[{part}]" if isinstance(part, int) else (f".{part}" if place else str(part))
    message = error["msg"].removeprefix("Value error, ")
    if error["type"] == "json_invalid":
        message = f"is not JSON: {message.removeprefix('Invalid JSON: ')}"
    elif error["type"] == "extra_forbidden":
        message = _UNKNOWN_PARAMETER if error["loc"][0] == EXCLUDED_FIELD else "is not a field of this body"
    return InvalidParameter(place or "body", message)


def _as_sent(parts: tuple[int | str, ...]) -> list[int | str]:
    """Return the location of a problem as named in the request: ``excluded, tags, team, 0`` is ``not.tag:team``."""
    inside_body = parts[:1] == ("filters",)
    names, sent = list(parts[1:] if inside_body else parts), ""
    for field, prefix in ((EXCLUDED_FIELD, NOT_PREFIX), *((field, prefix) for prefix, field in KEYED_FILTERS.items())):
        if len(names) > 1 and names[0] == field:
            sent += prefix
            names.pop(0)
    if sent or inside_body:
        names = [f"{sent}{names[0]}"[:80]] if names else []
    return ["filters", *names] if inside_body else names
