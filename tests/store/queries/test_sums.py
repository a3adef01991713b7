"""The shares of cost with a tag, to four decimal places."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

from chargeback.model.days import instants
from chargeback.store.facts.tables import FactTables
from chargeback.store.queries.sums import tag_coverage
from chargeback.store.queries.tag_index import TagIndex
from tests.support.facts import Share, write_shares
from tests.support.readers import Read

DAY = date(2026, 1, 2)
WINDOW = instants(DAY, DAY)
KEYS = ["owner", "team", *(f"k{number:02}" for number in range(12))]


def test_shares_of_the_cost(read: Read, facts: FactTables) -> None:
    """Tags of identities and resources count, for more keys than one query takes."""
    write_shares(facts, [Share(DAY, "sa-1", "1"), Share(DAY, "sa-2", "2", resource="lkc-2")])
    tags = TagIndex.undated({"sa-1": {"team": "a"}}, {"lkc-2": {"team": "b", "k11": "x"}, "lkc-1": {"owner": "me"}})
    found = read(lambda reader: tag_coverage(reader, WINDOW, KEYS), tags)
    assert list(found) == KEYS
    shares = {key: str(share) for key, share in found.items() if share}
    assert shares == {"owner": "0.3333", "team": "1.0000", "k11": "0.6667"}


def test_without_cost_there_is_no_share(read: Read, facts: FactTables) -> None:
    """There is no share of zero cost or of refunds."""
    assert read(lambda reader: tag_coverage(reader, WINDOW, ["team"])) == {"team": None}
    write_shares(facts, [Share(DAY, "sa-1", "-1")])
    assert read(lambda reader: tag_coverage(reader, WINDOW, ["team"])) == {"team": None}
    assert read(lambda reader: tag_coverage(reader, WINDOW, [])) == {}
    write_shares(facts, [Share(DAY, "sa-1", "1")])
    assert read(lambda reader: tag_coverage(reader, WINDOW, ["team"])) == {"team": Decimal(0)}
