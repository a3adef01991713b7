"""Dividing rows into pieces, as SQL: among the values of a split, or reallocated from a value to others.

Each query reads a relation of pieces, and keeps all of their columns; ``units`` (HUGEINT) is what is divided.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from chargeback.categories.handover import WHOLE

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


def split_pieces(before: str, value: str, outcome: str, outcomes: str) -> str:
    """Return the query that divides the pieces of ``before`` among the values of their outcomes.

    ``value`` and ``outcome`` are columns, ``outcomes`` is a table, see
    :func:`~chargeback.store.queries.category_join.outcome_table`.
    """
    pieces = f"(SELECT * FROM {before} JOIN {_weights(outcomes)} AS of_outcome ON of_outcome.outcome = {outcome})"
    return f"""
        SELECT * EXCLUDE (receivers, weights, outcome, receiver, share)
               REPLACE (receiver AS {value}, share AS units, is_first AND receiver = receivers[1] AS is_first)
        FROM ({divided(pieces, "receivers", "weights")})"""


def split_alike(before: str, value: str, outcome: str, outcomes: str, kept: Sequence[str]) -> dict[str, str]:
    """Return the same in steps, by their names: the last one has the sums (``units``) of the parts of pieces that are
    the same in the ``kept`` columns and in their remainder by the sum of the weights, and how many they are
    (``alike``)."""
    weights = _weights(outcomes)
    return {
        "wholes": f"""
            SELECT {", ".join(kept)}, units % total AS remainder, sum(units // total * alike) AS wholes,
                   sum(alike)::BIGINT AS alike
            FROM {before} JOIN (SELECT outcome, list_sum(weights)::HUGEINT AS total FROM {weights}) AS of_outcome
                 ON of_outcome.outcome = {outcome}
            GROUP BY ALL""",
        "remainders": divided(
            f"""(SELECT outcome, remainder, remainder AS units, receivers, weights
                 FROM (SELECT DISTINCT {outcome} AS outcome, remainder FROM wholes) JOIN {weights} USING (outcome))""",
            "receivers",
            "weights",
        ),
        "parts": f"""
            SELECT wholes.* REPLACE (receiver AS {value}, is_first AND receiver = receivers[1] AS is_first),
                   alike * share + wholes.wholes * weights[list_position(receivers, receiver)] AS units
            FROM wholes JOIN remainders
                 ON remainders.outcome = {outcome} AND remainders.remainder = wholes.remainder""",
    }


def _weights(outcomes: str) -> str:
    """Return the receivers and weights of all outcomes, also of those with one value."""
    return f"""(SELECT outcome, coalesce(receivers, [value]) AS receivers,
                       coalesce(weights, [1])::HUGEINT[] AS weights FROM {outcomes})"""


def parts_of_whole(shares: str) -> str:
    """Return who gets the whole cost of rows, by day and source: the ``receiver``, what remains with it (``share``) and
    what it ``passed`` on.

    ``shares`` is a table of (day, source, receiver, weight, passed), see
    :class:`~chargeback.categories.handover.Receiver`; units are parts of the whole cost of a row.
    """
    return f"""
        SELECT day AS date, source, {WHOLE}::HUGEINT AS units, receiver, weight::HUGEINT AS share,
               passed::HUGEINT AS passed
        FROM {shares}"""


def shared_parts(before: str, value: str, shares: str) -> str:
    """Return the same of the pieces of ``before``, for all ``units`` that earlier categories left of the whole: the
    parts of the receivers sum to them."""
    found = f"""(SELECT * FROM (SELECT DISTINCT date, {value} AS source, units FROM {before}) JOIN (
                     SELECT day AS date, source, list(receiver ORDER BY receiver) AS receivers,
                            list(weight::HUGEINT ORDER BY receiver) AS weights,
                            list(passed::HUGEINT ORDER BY receiver) AS passed
                     FROM {shares} GROUP BY ALL) USING (date, source))"""
    return f"""
        SELECT date, source, units, receiver, share,
               units * passed[list_position(receivers, receiver)] // {WHOLE} AS passed
        FROM ({divided(found, "receivers", "weights")})"""


def reallocated(before: str, value: str, parts: str) -> str:
    """Return the query that reallocates the pieces of ``before`` by the result of :func:`shared_parts`: what a source
    has ``went`` to others, whose pieces have what ``came`` to them. The total of a piece is its ``units`` of the
    row."""
    return f"""
        SELECT pieces.* REPLACE (
                   CASE WHEN found.source IS NULL THEN pieces.units ELSE 0 END AS units,
                   CASE WHEN found.source IS NULL THEN went ELSE went + pieces.units END AS went)
        FROM {before} AS pieces LEFT JOIN (SELECT DISTINCT date, source FROM {parts}) AS found
            ON found.date = pieces.date AND found.source = {value}
        UNION ALL BY NAME
        SELECT pieces.* REPLACE (receiver AS {value}, share AS units, share + passed AS came, passed AS went,
                                 FALSE AS is_direct)
        FROM {before} AS pieces JOIN {parts} AS found
            ON found.date = pieces.date AND found.source = {value} AND found.units = pieces.units"""
