"""Changes that a test can make to the served organisation: late corrections, lost days, deleted objects."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import date

from chargeback.demo.bills import cost, legacy_cost
from chargeback.demo.lines import late_line
from chargeback.demo.organisation import Organisation
from chargeback.demo.randomness import token
from chargeback.demo.responses import dumps
from chargeback.demo.shapes import Json


class OrganisationChanges:
    """Changes of an organisation. May be called from any thread."""

    def __init__(self, organisation: Organisation, *, legacy_shapes: bool = False) -> None:
        self._lock = threading.Lock()
        self._legacy = legacy_shapes
        self._organisation = organisation
        self._costs: dict[date, list[Json]] = {}
        self._texts: dict[date, list[str]] = {}
        self._hidden: set[str] = set()

    @property
    def organisation(self) -> Organisation:
        """The organisation served now."""
        return self._organisation

    def advance(self, days: int = 1) -> None:
        """Let ``days`` days pass: the same organisation with a later today. Changes remain."""
        with self._lock:
            self._organisation = Organisation.generate(self._organisation.spec.later(days))
            self._texts.clear()

    def edit_costs(self, day: date, edit: Callable[[list[Json]], list[Json]]) -> None:
        """Replace the rows of a day by the result of ``edit``. Money in rows is Decimal, never float."""
        self.set_costs(day, edit(self.cost_rows(day)))

    def set_costs(self, day: date, rows: list[Json]) -> None:
        """Serve exactly ``rows`` for a day."""
        with self._lock:
            self._costs[day] = [dict(row) for row in rows]
            self._texts.pop(day, None)

    def add_cost(self, day: date, row: Json) -> None:
        """Add a late line to a day."""
        self.edit_costs(day, lambda rows: [*rows, row])

    def bill_late(self, day: date) -> None:
        """Add a line that is billed late, always the same one, to a day."""
        organisation = self._organisation
        row_id = "cost-" + token(12, organisation.spec.seed, day, "late")
        self.add_cost(day, cost(late_line(organisation.traffic), day, row_id))

    def drop_costs(self, day: date) -> None:
        """Serve no line for a day."""
        self.set_costs(day, [])

    def restore_costs(self, day: date) -> None:
        """Serve the generated rows again."""
        with self._lock:
            self._costs.pop(day, None)
            self._texts.pop(day, None)

    def hide(self, *ids: str) -> None:
        """Leave the objects with these ids out of every list, as if they had been deleted."""
        with self._lock:
            self._hidden.update(ids)

    def show(self, *ids: str) -> None:
        """List them again."""
        with self._lock:
            self._hidden.difference_update(ids)

    def hidden(self, object_id: str) -> bool:
        """Return whether an object is left out."""
        return object_id in self._hidden

    def cost_rows(self, day: date) -> list[Json]:
        """Return the rows served for a day now, before legacy shapes."""
        with self._lock:
            found = self._costs.get(day)
        return [dict(row) for row in found] if found is not None else self._organisation.cost_rows(day)

    def cost_texts(self, day: date) -> list[str]:
        """Return the same as JSON texts, which are cached."""
        with self._lock:
            found = self._texts.get(day)
        if found is None:
            rows = self.cost_rows(day)
            if self._legacy:
                rows = [legacy_cost(row, index) for index, row in enumerate(rows)]
            found = [dumps(row) for row in rows]
            with self._lock:
                self._texts[day] = found
        return found
