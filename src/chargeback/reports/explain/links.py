"""Links around an explanation: from a row to its explanation, and from there to its sources.

They are relative to the address of their response, so they work behind every proxy.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from functools import lru_cache
from typing import Any
from urllib.parse import quote

from pydantic import Field

from chargeback.model.days import render_instant
from chargeback.reports.answers import ResponseModel


class ExplainLinks(ResponseModel):
    """Links to the sources of an explanation, relative to the address of the response."""

    line: str = Field(description="The billing line.", examples=["../billing?line_id=0f3a"])
    rows: str = Field(description="All rows of the line.")
    policy: str | None = Field(description="The policy; null if it is not recorded, and for topics.")
    bill: str = Field(description="The bill of the day.")
    revisions: str = Field(description="The revisions of the day.", examples=["../days/2026-01-31/revisions"])


def chargeback_link(row: Mapping[str, Any], as_of: datetime | None) -> str:
    """Return the link from a chargeback row of a list to its explanation."""
    metadata = row["metadata"]
    return (
        f"chargebacks/explain?date={row['timestamp'][:10]}&line_id={_encoded(metadata['line_id'])}"
        f"&identity_id={_encoded(row['identity_id'])}&portion={metadata['portion']}{_instant(as_of)}"
    )


def topic_link(row: Mapping[str, Any], as_of: datetime | None) -> str:
    """Return the link from a topic row of a list to its explanation."""
    return (
        f"topic-attributions/explain?date={row['timestamp'][:10]}&line_id={_encoded(row['metadata']['line_id'])}"
        f"&topic_name={_encoded(row['topic_name'])}{_instant(as_of)}"
    )


def links(day: date, line_id: str, as_of: datetime | None, *, rows: str, policy: str | None = None) -> ExplainLinks:
    """Return the links of an explanation: the line, all ``rows`` of it, the ``policy`` (its hash, if it is known), the
    bill of the day, and its revisions."""
    of_day = f"start_date={day}&end_date={day}"
    of_line = f"{of_day}&line_id={_encoded(line_id)}"
    then = _instant(as_of)
    return ExplainLinks(
        line=f"../billing?{of_line}{then}",
        rows=f"../{rows}?{of_line}{then}",
        policy=None if policy is None else f"../policies?hash={_encoded(policy)}",
        bill=f"../billing?{of_day}{then}",
        revisions=f"../days/{day}/revisions",
    )


def _instant(as_of: datetime | None) -> str:
    return "" if as_of is None else f"&as_of={_encoded(render_instant(as_of))}"


# A page of rows has few lines and identities, each many times.
@lru_cache(maxsize=4096)
def _encoded(text: str) -> str:
    return quote(text, safe="")
