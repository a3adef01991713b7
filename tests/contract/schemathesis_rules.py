"""Rules for schemathesis that the OpenAPI document cannot express: time zones, and rules for several parameters.

If the service refuses a request that the document allows, it is a failure, unless these rules, which the descriptions
of the parameters contain, are the only reasons.
"""

from __future__ import annotations

import json
import os
import re
from functools import cache
from pathlib import Path
from typing import Any
from zoneinfo import available_timezones

import schemathesis
from hypothesis import strategies as st

#: (parameter, start of the message) for rules that involve several parameters.
_RULES = (
    ("start_date", "should not be after the end"),
    ("period_start", "should not be after period_end"),
    ("period_start", "requires the other end of the period"),
    ("period_end", "requires the other end of the period"),
    ("active_at", "cannot be combined with"),
    ("tag_value", "requires tag_key"),
    ("valid_to", "should be after valid_from"),
    ("valid_from", "should be a date such as 2026-01-31, or none"),
    ("accept_less", "requires recalculate"),
    ("from_as_of", "should not be after as_of"),
    ("columns", "category_share needs exactly one"),
    ("columns", "FOCUS 1."),
    ("period", "should not be given together with"),
    ("compare", "should name dates of the calendar"),
    ("compare", "should not end before it begins"),
    ("compare", "should lie within the years"),
    *((name, "is needed, too") for name in ("from_start", "from_end", "to_start", "to_end")),
    *((name, "should not be given together with") for name in ("start_date", "end_date", "compare")),
    *((name, "should not end before it begins") for name in ("from_end", "to_end")),
    *((name, "should lie within the years") for name in ("from_end", "to_end")),
    ("series", "should be one of by"),
    ("leaves", "topics cannot be filtered by"),
    ("by", "should name no column twice"),
    ("top", "should be at most 4 numbers"),
    ("time_bucket", "should make at most"),
    ("start_date", "should be at most"),
    ("group_by", "should make at most"),
    ("group_by", "should not have"),
    ("format", "should not be given together with template"),
    ("currency", "should be a currency of this tenant"),
    ("currency", "has no rate for"),
    ("start_date", "is needed with end_date"),
    ("end_date", "should be between start_date"),
    ("body", "should have either identity_id, or category and value"),
    ("until", "should be a day from"),
    ("csv", "line "),
    ("mapping", "should be YAML of a mapping"),
    ("mapping.date_format", "should have day, month and year"),
    ("csv", "is not CSV"),
    ("from", "should be given for a reallocation"),
    ("from", "should not be the value that gets"),
    ("until", "should not be"),
    ("amount", "should have at most"),
    ("amount", "should not be zero"),
    ("reason", "is needed with "),
    ("scenario", "has neither a past nor books"),
    ("style", "should be given with basis=posted only"),
    ("timezone", "should be UTC with basis=posted"),
    ("time_bucket", "should be month or all with basis=posted"),
    *((name, "should be whole months of UTC") for name in ("start_date", "basis", "period")),
    *((name, "should not be before") for name in ("start_date", "basis", "period")),
    ("include", "should have issues only with basis=posted"),
    ("compare", "should be previous or none with basis=posted"),
    *((name, "should not be given with basis=posted") for name in ("sort_by", "sort_order", "min_amount")),
    ("columns", "should not have category_share"),
    ("parent", "there is no budget"),
    ("parent", "the parents form a cycle"),
    ("notify", "there is no sink"),
    ("scope", ""),
    ("percent", "should be above 0"),
    ("monthly", "should be above 0"),
    ("amounts", "should be above 0"),
    ("policies", ""),  # described elsewhere
)
#: Times at the ends of the calendar that cannot be represented in UTC.
_OUTSIDE = "should be a date and time within the years 1 to 9999"
_NO_RUNNER = "urn:chargeback:no-runner"
#: Simulations wait for a worker, which this service does not have; this is the error when too many of them wait.
_BUSY = "urn:chargeback:busy"
#: Changes of a version that does not exist; only a client that has read a version can name it.
_PRECONDITIONS = ("urn:chargeback:precondition-failed", "urn:chargeback:precondition-required")

#: The environment variable with the name of a file: a regular expression that must not match any response.
OUTSIDE = "CHARGEBACK_TESTS_OUTSIDE"

schemathesis.openapi.format("iana-time-zone", st.sampled_from(sorted(available_timezones() - {"localtime", "Factory"})))


@schemathesis.hook
def filter_failure(
    context: schemathesis.HookContext,
    failure: schemathesis.core.failures.Failure,
    case: schemathesis.Case[Any],
    response: schemathesis.Response,
) -> bool:
    """Return whether a failure counts as one."""
    kind = type(failure).__name__
    if kind == "ServerError":
        return response.status_code != 503 or json.loads(response.content)["type"] != _BUSY
    if kind != "RejectedPositiveData":
        return True
    problem = json.loads(response.content)
    if problem["type"] in (_NO_RUNNER, *_PRECONDITIONS):
        return False
    return not problem.get("errors") or not all(
        error["message"] == _OUTSIDE
        or error["parameter"].partition(".")[0] == "document"  # described elsewhere
        or any(_names(error["parameter"], name) and error["message"].startswith(text) for name, text in _RULES)
        for error in problem["errors"]
    )


@schemathesis.check
def nothing_from_outside(
    context: schemathesis.CheckContext, response: schemathesis.Response, case: schemathesis.Case[Any]
) -> None:
    """Fail if a response contains something outside the caller's scope that is not in the request itself."""
    asked = f"{case.formatted_path!r} {case.query!r} {case.body!r}"
    pattern = _outside()
    # A ZIP file is not text, but the names in it are.
    told = response.content.decode(errors="replace")
    found = [] if pattern is None else [each for each in pattern.findall(told) if each.strip('"') not in asked]
    assert not found, f"the answer tells of {found[:5]}, which are outside the scope"


@cache
def _outside() -> re.Pattern[str] | None:
    file = os.environ.get(OUTSIDE)
    return None if file is None else re.compile(Path(file).read_text(encoding="utf-8"))


def _names(place: str, name: str) -> bool:
    """Return whether a path in a request is the parameter, or that parameter of a list entry: ``items[0].valid_to``."""
    return place == name or place.endswith(f"].{name}")
