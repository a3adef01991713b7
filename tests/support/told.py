"""Every event that a test records must have the documented body of its kind."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Engine, Insert, event

from chargeback.notifications.bodies import BODIES
from chargeback.store.control.schema import events


def check_bodies() -> None:
    """Validate the bodies of all events from now on; another form is an error."""

    @event.listens_for(Engine, "before_execute")
    def _check(_connection: Any, statement: Any, *_: Any) -> None:
        if isinstance(statement, Insert) and statement.table is events:
            values = statement.compile().params
            BODIES[values["kind"]].model_validate(values["body"])
