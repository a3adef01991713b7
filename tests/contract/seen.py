"""What a scope makes visible, determined with filters of an unscoped client, and what is therefore outside."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.contract.records import Client, Record, typical

#: Ids that stand for no single identity or resource.
_EVERYWHERE = frozenset({"UNALLOCATED"})


@dataclass(frozen=True)
class Scoped:
    """A scope, and the filters that select the same rows of each dataset; None if no row of the dataset is visible."""

    name: str
    scope: Mapping[str, list[str]]
    chargebacks: Mapping[str, str]
    billing: Mapping[str, str] | None = None
    topics: Mapping[str, str] | None = None


def scopes_of(chargebacks: Sequence[Record], topics: Sequence[Record]) -> dict[str, Scoped]:
    """Return scopes of an identity, of an environment, and of a category value that splits rows."""
    identity = typical([row for row in chargebacks if row["identity_id"] != "UNALLOCATED"], "identity_id")
    environment = typical(topics, "env_id")
    category = {"category:cost_center": "payments"}
    return {
        "identity": Scoped("identity", {"identity_id": [identity]}, {"identity_id": identity}),
        "environment": Scoped(
            "environment",
            {"environment_id": [environment]},
            {"environment_id": environment},
            {"environment_id": environment},
            {"env_id": environment},
        ),
        "category": Scoped("category", {"category:cost_center": ["payments"]}, category, category, category),
    }


class Seen:
    """The rows within a scope, and the ids that occur in none of them."""

    def __init__(self, client: Client, tenant: str, scoped: Scoped) -> None:
        base = f"/api/v1/tenants/{tenant}"

        def _rows(name: str, filters: Mapping[str, str] | None) -> list[Record]:
            return [] if filters is None else client.all_items(f"{base}/{name}", **filters)

        self.chargebacks = _rows("chargebacks", scoped.chargebacks)
        self.billing = _rows("billing", scoped.billing)
        self.topics = _rows("topic-attributions", scoped.topics)
        everything = _rows("topic-attributions", {})
        resources = {each["resource_id"]: each for each in _rows("resources", {})}
        identities = {each["identity_id"]: each for each in _rows("identities", {})}
        # Sums also include cost that category values reallocate.
        asked = {"group_by": ["identity_id", "resource_id"], "start_date": "2020-01-01", **scoped.chargebacks}
        sums = client.answer(f"{base}/chargebacks/aggregate", **asked)["buckets"]
        self.identities = {each["dimensions"]["identity_id"] for each in sums}
        self.resources = {each["dimensions"]["resource_id"] for each in sums}
        self.resources = self._with_those_around(resources)
        self.topic_names = {row["topic_name"] for row in self.topics}
        known = identities | resources
        inside = (self.identities | self.resources) & known.keys()
        names = {key: each["display_name"] for key, each in known.items() if each["display_name"]}
        # Visible entities may have the same names, and have properties, such as the provider of an identity pool.
        told_of = {str(value) for key in inside for value in (known[key]["metadata"] or {}).values()}
        told_of |= {names[key] for key in inside & names.keys()} | inside | self.topic_names | _EVERYWHERE
        self._outside = known.keys() - inside | {name for key, name in names.items() if key not in inside}
        self._outside -= told_of
        self._topics = {row["topic_name"] for row in everything} - self.topic_names

    def _with_those_around(self, known: Mapping[str, Record]) -> set[str]:
        """Return the resources of the rows, and all their parents."""
        found = self.resources | {row["resource_id"] for row in self.billing}
        found |= {f"{row['cluster_resource_id']}:topic:{row['topic_name']}" for row in self.topics}
        found |= {row[name] for row in self.topics for name in ("cluster_resource_id", "env_id")}
        above = found
        while above:
            above = {known[each]["parent_id"] for each in above if each in known} - {None} - found
            found |= above
        return found

    @property
    def outside(self) -> list[str]:
        """Return what no response may contain: ids, display names, and topic names in quotes."""
        return sorted(self._outside) + sorted(f'"{name}"' for name in self._topics)

    @property
    def pattern(self) -> str:
        """Return a regular expression that matches outside ids and names as whole words."""
        return rf"(?<![\w-])(?:{'|'.join(map(re.escape, self.outside))})(?![\w-])"

    def told(self, text: str) -> list[str]:
        """Return the parts of a text that are outside the scope."""
        return re.findall(self.pattern, text)
