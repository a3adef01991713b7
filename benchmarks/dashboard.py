"""A dashboard that is viewed repeatedly: the same request uncached, cached, and answered with status 304."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from typing import Any, Final

from benchmarks.measure import Figure, milliseconds
from benchmarks.questions import Asking, uncached
from benchmarks.serving import target
from benchmarks.shapes import Shape

_DAYS: Final = 30


def costs_page(shape: Shape) -> dict[str, Any]:
    """Return the parameters of ``/costs`` with which the costs page asks for the last 30 days of a tenant."""
    last = shape.last_day
    return {
        "start_date": str(last - timedelta(days=_DAYS - 1)),
        "end_date": str(last),
        "by": ["identity_id", "product_type", "environment_id", "tag:team"],
        "include": "issues,days,forecast,topics",
    }


def dashboard(asking: Asking) -> Iterator[Figure]:
    """Measure costs of 30 days and of the 30 before, and a page of resources."""
    costs = costs_page(asking.shape)
    dates = {name: costs[name] for name in ("start_date", "end_date")}
    questions: tuple[tuple[str, str, dict[str, Any]], ...] = (
        ("costs", "/costs", costs),
        ("aggregate by identity and day", "/chargebacks/aggregate", dates),
        ("search for resources", "/resources", {"search": "events-0423"}),
    )
    for name, rest, params in questions:
        question = target(asking.path(rest), **params)
        made = milliseconds(uncached(asking.client, asking.path(rest), **params), repeats=asking.repeats)
        yield Figure(_group(asking), f"{name}, uncached", made, "ms")
        if rest != "/resources":  # lists are not cached
            kept = milliseconds(partial(asking.client.answer, "GET", question), repeats=asking.repeats)
            yield Figure(_group(asking), f"{name}, cached", kept, "ms", reference=made)
        etag = asking.client.etag(question)
        unchanged = milliseconds(partial(asking.client.unchanged, question, etag), repeats=asking.repeats)
        yield Figure(_group(asking), f"{name}, 304", unchanged, "ms", reference=made)


def _group(asking: Asking) -> str:
    return f"dashboard, {asking.shape.name}"
