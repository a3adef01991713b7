"""The id of a dimension is the same wherever it is computed."""

from __future__ import annotations

import duckdb
from hypothesis import given
from hypothesis import strategies as st

from chargeback.model.chargeback import DIMENSION_COLUMNS, DIMENSION_ID_SQL, dimension_id

_texts = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=20)


@given(st.tuples(*[_texts] * len(DIMENSION_COLUMNS)))
def test_sql_and_python_agree(values: tuple[str, ...]) -> None:
    """The query engine computes the same id as Python: a positive integer below 2⁵³."""
    row = ", ".join(f"? AS {name}" for name in DIMENSION_COLUMNS)
    with duckdb.connect() as database:
        (found,) = database.execute(f"SELECT {DIMENSION_ID_SQL} FROM (SELECT {row})", list(values)).fetchall()
    assert found == (dimension_id(values),)
    assert 0 < found[0] < 2**53
