"""Exact conversions between Arrow's decimal columns and Python's integers, and exact sums of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from chargeback.model.money import exact_sum

#: A decimal type without decimal places, for amounts or quantities in units of their last place.
INTEGER: Final = pa.decimal128(38, 0)

#: The same with room for the sum of as many integers as there may be.
WIDE_INTEGER: Final = pa.decimal256(76, 0)

#: A type that has the sum of as many amounts as there may be.
WIDE: Final = pa.decimal256(76, 12)

_BYTES: Final = 16
_WORD: Final = 64


def total_of(amounts: pa.Array | pa.ChunkedArray) -> Decimal:
    """Return the exact sum of amounts, of any size.

    >>> total_of(pa.array([Decimal("1.25"), Decimal("-0.5")], pa.decimal128(38, 12)))
    Decimal('0.750000000000')
    """
    # Arrow's sums keep the type of the summed values and overflow silently.
    return exact_sum([pc.sum(amounts.cast(WIDE), min_count=0).as_py()])


def reinterpret(values: pa.Array, data_type: pa.DataType) -> pa.Array:
    """Return the same 128-bit integers with another scale: ``1.25`` of two decimals is ``125`` of none."""
    return pa.Array.from_buffers(data_type, len(values), values.buffers(), offset=values.offset)


def integers_of(values: pa.Array) -> list[int]:
    """Return the values of a decimal column without nulls, each in units of its last place.

    >>> from decimal import Decimal
    >>> integers_of(pa.array([Decimal("-1.25"), Decimal("0.5")], pa.decimal128(38, 2)))
    [-125, 50]
    """
    data = memoryview(values.buffers()[1])[values.offset * _BYTES :][: len(values) * _BYTES]
    low, high = data.cast("Q")[::2], data.cast("q")[1::2]
    return [(above << _WORD) | below for below, above in zip(low, high, strict=True)]


def decimals_of(integers: Iterable[int], data_type: pa.DataType) -> pa.Array:
    """Return a decimal column of integers that are in units of its last place.

    >>> decimals_of([-125], pa.decimal128(38, 2)).to_pylist()
    [Decimal('-1.25')]
    """
    return _of_bytes(b"".join([encode(value) for value in integers]), data_type)


def encode(integer: int) -> bytes:
    """Return a value of a decimal column in Arrow's 16 bytes."""
    return integer.to_bytes(_BYTES, "little", signed=True)


def from_encoded(pieces: Sequence[bytes], data_type: pa.DataType) -> pa.Array:
    """Return a decimal column from values that :func:`encode` returned."""
    return _of_bytes(b"".join(pieces), data_type)


def int64(value: int) -> pa.Scalar:
    """Return a scalar for arithmetic on columns. (With an ``int`` Arrow tries an optional import each time: 40 µs.)"""
    return pa.scalar(value, pa.int64())


def _of_bytes(data: bytes, data_type: pa.DataType) -> pa.Array:
    return pa.Array.from_buffers(data_type, len(data) // _BYTES, [None, pa.py_buffer(data)])


def repeat(values: Iterable[int], counts: Iterable[int]) -> Any:
    """Return an ``int32`` column with each value repeated as often as its count says."""
    data = b"".join([value.to_bytes(4, "little") * count for value, count in zip(values, counts, strict=True)])
    return pa.Array.from_buffers(pa.int32(), len(data) // 4, [None, pa.py_buffer(data)])


def take_dictionary(texts: pa.Array, used: pa.DictionaryArray) -> pa.DictionaryArray:
    """Return the texts at the positions that ``used`` encodes, dictionary-encoded: each text once, in order of first
    appearance. Positions are encoded once for all columns that are taken at them.

    >>> used = pa.array([2, 3, 0]).dictionary_encode()
    >>> take_dictionary(pa.array(["a", "b", "a", "c"]), used).dictionary.to_pylist()
    ['a', 'c']
    """
    taken = texts.take(used.dictionary).dictionary_encode()
    return pa.DictionaryArray.from_arrays(taken.indices.take(used.indices), taken.dictionary)
