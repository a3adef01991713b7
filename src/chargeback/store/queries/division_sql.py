"""Dividing rows into pieces, as SQL: among the values of a split, or handed on from a value to others.

A *piece* has all columns of the row that it is part of, and

- ``units`` (HUGEINT, 10⁻¹² of the currency): what it adds to the total of its values;
- ``kind``: what was assigned (``direct``), came from another value (``in``), or went to one (``out``, of the opposite
  sign);
- ``is_held``: whether its value has it still, so that it can be handed on;
- ``is_first``: whether it stands for the row, as exactly one of its pieces does;
- ``is_new``: whether no piece of the row before it has its value; unknown once values hand on a second time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

DIRECT: Final = "direct"
IN: Final = "in"
OUT: Final = "out"

# More than there are receivers: of equal remainders the first receiver is favoured.
_MORE_THAN_RECEIVERS: Final = 1_000_000


def divided(source: str, receivers: str, weights: str) -> str:
    """Return the query that divides the ``units`` of each row of ``source`` by largest remainder, exactly as
    :func:`~chargeback.allocation.split.split_exactly` does; with a row for each receiver, and the further columns
    ``receiver`` and ``share``.

    ``receivers`` is the column with the list of receivers, ascending, and ``weights`` (HUGEINT[]) has their positive
    weights.
    """
    return f"""
        SELECT * EXCLUDE (total_weight, whole, rest, rounded_down, ranks, left_over, lowest),
               unnest({receivers}) AS receiver,
               unnest(list_transform({weights}, lambda weight, place:
                   CASE WHEN units < 0 THEN -1 ELSE 1 END * (whole * weight + rounded_down[place]
                   + CASE WHEN left_over > 0 AND ranks[place] >= lowest THEN 1 ELSE 0 END))) AS share
        FROM (SELECT *, list_reverse_sort(ranks)[left_over] AS lowest
        FROM (SELECT *,
                     list_transform({weights}, lambda weight, place: {_MORE_THAN_RECEIVERS}
                         * (rest * weight - rounded_down[place] * total_weight) - place) AS ranks,
                     (rest - list_sum(rounded_down))::BIGINT AS left_over
        FROM (SELECT *, list_transform({weights}, lambda weight: (rest * weight) // total_weight) AS rounded_down
        FROM (SELECT *, abs(units) // total_weight AS whole, abs(units) % total_weight AS rest
        FROM (SELECT *, list_sum({weights})::HUGEINT AS total_weight FROM {source})))))"""


def split_pieces(before: str, value: str, receivers: str, weights: str) -> str:
    """Return the query that divides the pieces of ``before`` among the values of a split, where they have one.

    ``value`` is the column of the values.
    """
    some = divided(f"(SELECT * FROM {before} WHERE {weights} IS NOT NULL)", receivers, weights)
    return f"""
        SELECT * REPLACE (TRUE AS is_held) FROM {before} WHERE {weights} IS NULL
        UNION ALL BY NAME
        SELECT * EXCLUDE (receiver, share)
               REPLACE (receiver AS {value}, share AS units, TRUE AS is_held,
                        is_first AND receiver = {receivers}[1] AS is_first)
        FROM ({some})"""


def handed_on(
    before: str, value: str, receivers: str, source: str, proportions: str, together: Sequence[str] = ()
) -> Iterator[tuple[str, str]]:
    """Yield (suffix of its name, query): after the last, the pieces of ``before`` that the value ``source`` (SQL) holds
    are handed on, on the days of ``proportions``, a table of (day, receivers, weights).

    Pieces that are the same in the columns ``together`` are handed on as one: what is rounded is their sum.
    """
    yield (
        "found",
        f"""
        SELECT pieces.*, receivers AS to_whom, weights::HUGEINT[] AS how_much
        FROM {before} AS pieces LEFT JOIN {proportions} ON is_held AND {value} = {source} AND date = day""",
    )
    found = f"{before}_found"
    given = divided(f"({_as_one(found, together)})", "to_whom", "how_much")
    rest = "EXCLUDE (to_whom, how_much)"
    yield (
        "handed",
        f"""
        SELECT * {rest} REPLACE (is_held AND how_much IS NULL AS is_held) FROM {found}
        UNION ALL BY NAME
        SELECT * {rest}
               REPLACE (-units AS units, '{OUT}' AS kind, FALSE AS is_held, FALSE AS is_first, FALSE AS is_new)
        FROM {found} WHERE how_much IS NOT NULL
        UNION ALL BY NAME
        SELECT * EXCLUDE (to_whom, how_much, receiver, share)
               REPLACE (receiver AS {value}, share AS units, '{IN}' AS kind, TRUE AS is_held, FALSE AS is_first,
                        NOT list_contains(coalesce({receivers}, []), receiver) AS is_new)
        FROM ({given})""",
    )


def _as_one(found: str, together: Sequence[str]) -> str:
    handed = f"SELECT * FROM {found} WHERE how_much IS NOT NULL"
    if not together:
        return handed
    same = f"OVER (PARTITION BY {', '.join(together)})"
    return f"SELECT * REPLACE (sum(units) {same} AS units) FROM ({handed}) QUALIFY row_number() {same} = 1"
