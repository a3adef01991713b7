"""What the OpenAPI document cannot say, told to schemathesis: names of time zones, and rules between parameters.

A request that the document allows and the service refuses is a failure, unless all that it was refused for are these
rules. They are in the descriptions of the parameters.
"""

from __future__ import annotations

import json
from typing import Any
from zoneinfo import available_timezones

import schemathesis
from hypothesis import strategies as st

#: (parameter, how the message begins) of everything that depends on more than one parameter.
_RULES = (
    ("start_date", "should not be after the end"),
    ("period_start", "should not be after period_end"),
    ("period_start", "requires the other end of the period"),
    ("period_end", "requires the other end of the period"),
    ("active_at", "cannot be combined with"),
    ("tag_value", "requires tag_key"),
    ("accept_less", "requires recalculate"),
    ("period", "should not be given together with dates"),
    ("compare", "should name dates of the calendar"),
    ("compare", "should not end before it begins"),
    ("compare", "should lie within the years"),
    ("series", "should be one of by"),
    ("by", "should name no column twice"),
    ("top", "should be at most 4 numbers"),
    ("time_bucket", "should make at most"),
    ("start_date", "should be at most"),
)
#: Instants at the ends of the calendar that have no counterpart in UTC.
_OUTSIDE = "should be a date and time within the years 1 to 9999"
_NO_RUNNER = "urn:chargeback:no-runner"

schemathesis.openapi.format("iana-time-zone", st.sampled_from(sorted(available_timezones() - {"localtime", "Factory"})))


@schemathesis.hook
def filter_failure(
    context: schemathesis.HookContext,
    failure: schemathesis.core.failures.Failure,
    case: schemathesis.Case[Any],
    response: schemathesis.Response,
) -> bool:
    """Whether a failure counts."""
    if type(failure).__name__ != "RejectedPositiveData":
        return True
    problem = json.loads(response.content)
    if problem["type"] == _NO_RUNNER:
        return False
    return not problem.get("errors") or not all(
        error["message"] == _OUTSIDE
        or any(error["parameter"] == name and error["message"].startswith(text) for name, text in _RULES)
        for error in problem["errors"]
    )
