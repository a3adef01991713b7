"""Traffic over time: daily totals spread exactly over the minutes of a day.

Every series of a day has an integer total and a curve of cumulative weights. The sum of the minutes ``[a, b)`` is
``total·W(b)÷W(1440) − total·W(a)÷W(1440)`` in whole numbers, so that any window takes the same time to calculate, every
minute is an integer ≥ 0, and the minutes of a day add up exactly to its total. No floating point, no ``math``: equal
digits on every machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from math import prod
from typing import NamedTuple

from chargeback.demo.inventory import Cluster, DemoInventory, Member, Statement, Topic
from chargeback.demo.randomness import numbers

MINUTES = 1440
#: How long a burst lasts.
BURST_DAYS = 6
_BURST_FACTOR = 20
RHYTHMS = ("office", "evening", "night", "steady")

#: The weight of each hour; minutes in between are interpolated.
_HOURS: dict[str, tuple[int, ...]] = {
    "office": (4, 3, 3, 3, 4, 8, 20, 45, 80, 95, 100, 96, 88, 94, 98, 92, 80, 60, 40, 28, 20, 14, 9, 6),
    "evening": (30, 18, 10, 6, 5, 6, 10, 18, 26, 30, 34, 38, 42, 44, 46, 50, 58, 70, 86, 98, 100, 90, 70, 48),
    "night": (40, 100, 100, 90, 60, 20, 5, 4, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 4, 6, 10, 20),
    "steady": (50,) * 24,
}
#: Traffic of Monday to Sunday in per mille.
_WEEK: dict[str, tuple[int, ...]] = {
    "office": (1000, 1040, 1050, 1030, 960, 240, 190),
    "evening": (820, 840, 880, 930, 1150, 1290, 1220),
    "night": (1000, 1000, 1000, 1000, 1000, 1000, 1400),
    "steady": (1000, 1000, 1000, 1000, 1000, 990, 980),
}


def _curve(rhythm: str) -> tuple[int, ...]:
    hours, cumulative = _HOURS[rhythm], [0]
    for minute in range(MINUTES):
        hour, within = divmod(minute, 60)
        level = hours[hour] * (60 - within) + hours[(hour + 1) % 24] * within
        cumulative.append(cumulative[-1] + level * 10 + (minute * 7919) % 211)
    return tuple(cumulative)


CURVES = {rhythm: _curve(rhythm) for rhythm in RHYTHMS}


class Deltas(NamedTuple):
    """A series of one-minute deltas over one day; ``total`` is their exact sum, in the metric's unit."""

    labels: Mapping[str, str]
    total: int
    curve: tuple[int, ...]

    def sum(self, first: int, end: int) -> int:
        """Return the sum of the minutes ``[first, end)`` of the day."""
        whole = self.curve[MINUTES]
        return self.total * self.curve[end] // whole - self.total * self.curve[first] // whole

    def at(self, minute: int) -> int:
        """The sample of one minute."""
        return self.sum(minute, minute + 1)


class Levels(NamedTuple):
    """A gauge over one day: starts at ``start`` and grows by ``step`` every full hour."""

    labels: Mapping[str, str]
    start: int
    step: int

    def sum(self, first: int, end: int) -> int:
        """The sum of the samples of the minutes ``[first, end)``; divided by their number, the mean."""
        return self._until(end) - self._until(first)

    def at(self, minute: int) -> int:
        """The sample of one minute."""
        return self.start + self.step * (minute // 60)

    def _until(self, end: int) -> int:
        hours, rest = divmod(end, 60)
        full = 60 * (self.start * hours + self.step * (hours * (hours - 1) // 2))
        return full + rest * (self.start + self.step * hours)


@dataclass(frozen=True)
class Burst:
    """A consumer that reads the same data again and again, or a load test: for some days it reads far more than
    usual."""

    member: Member
    topic: Topic
    first_day: date
    days: int
    factor: int

    @classmethod
    def of(cls, inventory: DemoInventory, first_day: date, other_than: Burst | None = None) -> Burst | None:
        """Return the burst that begins on ``first_day``: the service account that reads most from the first cluster
        with reading service accounts on that day, and the topic most read there, but those of another burst; None if
        there are none."""
        accounts = {account.id for account in inventory.service_accounts}
        for cluster in inventory.clusters:
            readers = [
                member
                for member in inventory.members[cluster.id]
                if member.principal in accounts and member.read and _at_work(member, cluster, first_day)
                if other_than is None or member.principal != other_than.member.principal
            ]
            topics = [
                each for each in inventory.topics[cluster.id] if other_than is None or each is not other_than.topic
            ]
            if readers and topics:
                member = max(readers, key=lambda each: (each.read, each.principal))
                topic = max(topics, key=lambda each: (each.read, each.name))
                return cls(member, topic, first_day, BURST_DAYS, _BURST_FACTOR)
        return None

    def factor_on(self, day: date) -> int:
        """Return the factor of the reading on a day."""
        return self.factor if 0 <= (day - self.first_day).days < self.days else 1


@dataclass(frozen=True)
class Traffic:
    """The traffic of an organisation, day by day; each day is independent of all others."""

    seed: int
    first_day: date
    inventory: DemoInventory
    bursts: tuple[Burst, ...] = ()

    def members(self, cluster: Cluster, day: date) -> list[tuple[Member, int, int]]:
        """Return the active principals of ``cluster`` on that day, with bytes written and read; idle ones are left out.

        On about one day in ninety, a principal is idle.
        """
        members = self.inventory.members[cluster.id]
        noise = numbers(2 * len(members), self.seed, "members", cluster.id, day)
        found = []
        for index, member in enumerate(members):
            if not _at_work(member, cluster, day) or noise[2 * index] % 91 == 0:
                continue
            written = self._amount(member.written, member.rhythm, day, noise[2 * index])
            read = self._amount(member.read, member.rhythm, day, noise[2 * index + 1])
            read *= prod(each.factor_on(day) for each in self.bursts if each.member is member)
            if written or read:
                found.append((member, written, read))
        return found

    def topics(self, cluster: Cluster, day: date) -> list[tuple[Topic, int, int, int]]:
        """Return the topics of ``cluster`` on that day: bytes written, bytes read, bytes on disk at the start of the
        day."""
        topics = self.inventory.topics[cluster.id]
        noise = numbers(2 * len(topics), self.seed, "topics", cluster.id, day)
        found = []
        for index, topic in enumerate(topics):
            if not topic.existed_on(day):
                continue
            written = self._amount(topic.written, topic.rhythm, day, noise[2 * index])
            read = self._amount(topic.read, topic.rhythm, day, noise[2 * index + 1])
            read *= prod(each.factor_on(day) for each in self.bursts if each.topic is topic)
            age = (day - self.first_day).days
            kept = topic.retained * (1000 + max(0, min(age, 400))) // 1000
            found.append((topic, written, read, kept))
        return found

    def statements(self, day: date) -> list[tuple[Statement, int]]:
        """Return the Flink statements of that day, with thousandths of CFU minutes."""
        statements = self.inventory.statements
        noise = numbers(len(statements), self.seed, "statements", day)
        return [
            (statement, self._amount(statement.cfu, statement.rhythm, day, noise[index]))
            for index, statement in enumerate(statements)
            if statement.existed_on(day)
        ]

    def _amount(self, base: int, rhythm: str, day: date, noise: int) -> int:
        """Return the usual amount × weekday × growth (0.2 % of the initial amount per day, for two years) × a random
        factor (0.7 to 1.3)."""
        age = max(0, min((day - self.first_day).days, 730))
        return base * _WEEK[rhythm][day.weekday()] * (1000 + 2 * age) * (700 + noise % 601) // 1_000_000_000


def _at_work(member: Member, cluster: Cluster, day: date) -> bool:
    gone = cluster.deleted is not None and cluster.deleted.date() < day
    return member.since <= day and not gone and (member.until is None or day <= member.until)
