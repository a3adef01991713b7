"""The demo's cost categories: ``cost_categories.yaml`` with the dates and ids of one organisation."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from importlib.resources import files
from typing import Any, Final

import yaml

from chargeback.demo.people import TEAMS
from chargeback.demo.randomness import stream
from chargeback.model.inventory import Inventory

#: The category whose costs have something to be assigned yet, and what is left: about this part of the total.
COST_CENTER: Final = "cost_center"
OPEN_SHARE: Final = Fraction(8, 100)
_CLOSE: Final = Fraction(2, 1000)

_SHARED_CLUSTER: Final = "staging-standard-2"
_PRODUCTION: Final = frozenset({"prod", "analytics"})
_DEVELOPMENT: Final = "dev"
_COST_CENTER_OF_TEAM: Final = {
    "billing": "payments",
    "catalog": "storefront",
    "growth": "storefront",
    "search": "storefront",
    "shipping": "logistics",
}


@dataclass(frozen=True)
class UndecidedCost:
    """What an identity costs, without what is decided for whole clusters and products; whether it has the tag
    ``team``."""

    identity_id: str
    cost: Decimal
    is_tagged: bool


@dataclass(frozen=True)
class CategoryFacts:
    """The facts from which the categories of one organisation are made. ``confirmed`` maps the identities that have no
    tag, but whose cost centre finance knows by asking, to their cost centres; ``disputed`` are identities whose teams
    deny that they own them."""

    reorganisation: date
    shared_cluster: str
    production: tuple[str, ...]
    development: str
    confirmed: Mapping[str, str]
    disputed: tuple[str, ...] = ()

    @classmethod
    def of(cls, inventory: Inventory, first: date, last: date) -> CategoryFacts:
        """Return the facts of an organisation whose costs are known from ``first`` to ``last``. It was reorganised in
        the middle of these days."""
        named = {(each.resource_type, each.display_name): each.resource_id for each in inventory.resources}
        middle = first + timedelta(days=((last - first).days + 1) // 2)
        production = sorted(named["environment", name] for name in _PRODUCTION)
        shared = named["kafka_cluster", _SHARED_CLUSTER]
        return cls(middle, shared, tuple(production), named["environment", _DEVELOPMENT], {})

    def with_answers(
        self, seed: int, undecided: Sequence[UndecidedCost], total: Decimal, names: Mapping[str, str]
    ) -> CategoryFacts:
        """Return the facts after finance has asked the owners of most identities without a tag: what is still open are
        identities with about :data:`OPEN_SHARE` of the total. ``undecided`` are all costs that only tags and answers
        decide, ``names`` the display names of the identities."""
        still_open = open_identities(undecided, total)
        asked = sorted({each.identity_id for each in undecided if not each.is_tagged} - still_open)
        confirmed = {each: cost_center_of(seed, each, names.get(each, "")) for each in asked}
        disputed = sorted({each.identity_id for each in undecided if each.is_tagged} & still_open)
        return replace(self, confirmed=confirmed, disputed=tuple(disputed))

    def documents(self, *, with_tags: bool = True) -> dict[str, Any]:
        """Return the documents of the categories by key; without the rules for tags, if so wanted."""
        text = files("chargeback.demo").joinpath("cost_categories.yaml").read_text(encoding="utf-8")
        filled: dict[str, Any] = _filled(yaml.safe_load(text), self._placeholders())
        for document in filled.values():
            document["rules"] = [rule for rule in document["rules"] if with_tags or "tag" not in rule["match"]]
        return filled

    def _placeholders(self) -> dict[str, Any]:
        return {
            "<reorganisation>": self.reorganisation.isoformat(),
            "<shared-cluster>": self.shared_cluster,
            "<production>": list(self.production),
            "<development>": self.development,
            "<confirmed>": list(_confirmations(self.confirmed)),
            "<disputed>": list(_disputes(self.disputed)),
        }


def open_identities(undecided: Sequence[UndecidedCost], total: Decimal) -> set[str]:
    """Return identities whose costs sum to about :data:`OPEN_SHARE` of the total and not to more: the largest first, as
    long as they fit; those with a tag only if the others do not suffice."""
    left = Fraction(total) * OPEN_SHARE
    enough = Fraction(total) * _CLOSE
    found = set()
    for each in sorted(undecided, key=lambda each: (each.is_tagged, -each.cost, each.identity_id)):
        if each.cost <= left and left > enough:
            found.add(each.identity_id)
            left -= Fraction(each.cost)
    return found


def cost_center_of(seed: int, identity_id: str, name: str) -> str:
    """Return the cost centre that the owner of an identity names: that of the team in the name, otherwise a random one,
    the same for the same seed."""
    named = name.partition("-")[0]
    team = named if named in TEAMS else stream(seed, "cost center", identity_id).choice(TEAMS)
    return _COST_CENTER_OF_TEAM.get(team, team)


def _confirmations(confirmed: Mapping[str, str]) -> Iterable[dict[str, Any]]:
    by_value: dict[str, list[str]] = defaultdict(list)
    for identity, value in sorted(confirmed.items()):
        by_value[value].append(identity)
    for value, identities in sorted(by_value.items()):
        yield {
            "id": f"confirmed-{value}",
            "match": {"identity": identities},
            "assign": value,
            "reason": "No tag; the owner answered the question of finance",
        }


def _disputes(disputed: Sequence[str]) -> Iterable[dict[str, Any]]:
    if disputed:
        yield {
            "id": "disputed",
            "match": {"identity": list(disputed)},
            "assign": "UNASSIGNED",
            "reason": "FIN-207: tagged, but the team says that it does not own them",
        }


def _filled(document: Any, values: Mapping[str, Any]) -> Any:
    """Return a document with placeholders replaced; in a list, a list takes the place of its placeholder."""
    if isinstance(document, Mapping):
        return {key: _filled(value, values) for key, value in document.items()}
    if isinstance(document, list):
        filled = [(each, _filled(each, values)) for each in document]
        return [part for each, new in filled for part in (new if each != new and isinstance(new, list) else [new])]
    return values.get(document, document) if isinstance(document, str) else document
