"""The identities of the generated organisation: users, service accounts, identity providers and pools."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from chargeback.demo.inventory import DemoInventory, IdentityPool, IdentityProvider, ServiceAccount, User
from chargeback.demo.randomness import IdMaker, stream
from chargeback.demo.sizes import SizeSpec

TEAMS = ("payments", "orders", "search", "fraud", "shipping", "billing", "catalog", "growth", "risk", "platform")
JOBS = ("ingest", "api", "enricher", "writer", "reader", "replay", "etl", "monitor", "sync", "scorer")
FIRST = ("Ada", "Grace", "Alan", "Edsger", "Barbara", "Donald", "Frances", "Ken", "Radia", "Leslie", "Hedy", "Tony")
LAST = ("Moreau", "Okafor", "Lindqvist", "Tanaka", "Silva", "Novak", "Haddad", "Keller", "Rossi", "Murphy", "Iyer")


@dataclass(frozen=True)
class GenerationPlan:
    """Parameters of all generators: the seed, the size, and the first day of the organisation's bills."""

    seed: int
    size: str
    size_spec: SizeSpec
    first_day: date
    ids: IdMaker

    def rng(self, *parts: object) -> random.Random:
        """Return a random generator for one part; additions to one part do not change the others."""
        return stream(self.seed, self.size, *parts)

    def long_ago(self, rng: random.Random) -> datetime:
        """Return a time in the two years before the first day."""
        return self.moment(-rng.randrange(1, 700), rng)

    def moment(self, offset: int, rng: random.Random) -> datetime:
        """Return a time of day ``offset`` days after the first day."""
        start = datetime.combine(self.first_day, datetime.min.time(), UTC)
        return start + timedelta(days=offset, seconds=rng.randrange(86_400))


def team_of(seed: int, identity_id: str, name: str) -> str | None:
    """Return the team of an identity, or None for one in six, which have no tag. A name such as ``payments-api-000``
    has the team; for other names it is random, the same for the same seed."""
    rng = stream(seed, "team", identity_id)
    if rng.randrange(6) == 0:
        return None
    named = name.partition("-")[0]
    return named if named in TEAMS else rng.choice(TEAMS)


def add_people(plan: GenerationPlan, inventory: DemoInventory) -> None:
    """Add users, service accounts, providers and pools.

    The last service account is deleted on the sixth day, the one before it is created on the fifth; others are created
    and deleted over the months.
    """
    _add_users(plan, inventory)
    _add_service_accounts(plan, inventory)
    _add_pools(plan, inventory)


def _add_users(plan: GenerationPlan, inventory: DemoInventory) -> None:
    rng = plan.rng("users")
    for index in range(plan.size_spec.users):
        first, last = FIRST[index % len(FIRST)], LAST[(index * 5 + index // len(FIRST)) % len(LAST)]
        number = f".{index}" if index >= len(FIRST) else ""
        inventory.users.append(
            User(
                id=plan.ids.make("u-"),
                name=f"{first} {last}",
                created=plan.long_ago(rng),
                email=f"{first.lower()}.{last.lower()}{number}@acme.example",
                auth_type="AUTH_TYPE_SSO" if rng.randrange(3) else "AUTH_TYPE_LOCAL",
            )
        )


def _add_service_accounts(plan: GenerationPlan, inventory: DemoInventory) -> None:
    rng = plan.rng("service accounts")
    count = plan.size_spec.service_accounts
    for index in range(count):
        created, deleted = plan.long_ago(rng), None
        fate = rng.randrange(100)
        comes, goes = rng.randrange(1, 150), rng.randrange(10, 200)
        if index == count - 1:
            deleted = plan.moment(5, rng)
        elif index == count - 2:
            created = plan.moment(4, rng)
        elif index >= 8 and fate < 15:
            created = plan.moment(comes, rng)
        elif index >= 8 and fate < 25:
            deleted = plan.moment(goes, rng)
        team, job = TEAMS[index % len(TEAMS)], JOBS[(index // len(TEAMS) + index) % len(JOBS)]
        inventory.service_accounts.append(
            ServiceAccount(
                id=plan.ids.make("sa-"),
                name=f"{team}-{job}-{index:03d}",
                created=created,
                deleted=deleted,
                description=f"{job} of team {team}",
            )
        )


def _add_pools(plan: GenerationPlan, inventory: DemoInventory) -> None:
    rng = plan.rng("pools")
    for name, issuer in (("workforce", "https://login.acme.example"), ("workloads", "https://sts.acme.example")):
        inventory.providers.append(
            IdentityProvider(id=plan.ids.make("op-"), name=name, created=plan.long_ago(rng), issuer=issuer)
        )
    for index in range(plan.size_spec.pools):
        inventory.pools.append(
            IdentityPool(
                id=plan.ids.make("pool-"),
                name=f"{TEAMS[(index * 3) % len(TEAMS)]}-pool-{index}",
                created=plan.long_ago(rng),
                provider=inventory.providers[index % 2].id,
            )
        )
