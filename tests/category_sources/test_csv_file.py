"""CSV files of entries, as spreadsheets write them."""

from __future__ import annotations

import csv
import io
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chargeback.category_sources import csv_file
from chargeback.category_sources.contract import CategoryEntry
from chargeback.category_sources.csv_file import decoded, read_entries, source
from chargeback.errors import ConfigurationError, SourceError
from chargeback.model.dated import Period
from chargeback.store.queries.sql_format import csv_field

HEAD = "entity_type,entity_id,value,percent,valid_from,valid_to\n"
ONE = CategoryEntry("identity", "sa-1", "payments", Decimal("33.5"), Period(date(2026, 3, 1)), "line 2")


def problems(text: str) -> list[str]:
    """Return every mistake in a file."""
    with pytest.raises(ConfigurationError) as error:
        read_entries(text)
    return [str(each) for each in error.value.problems]


@pytest.mark.parametrize(
    "text",
    [
        HEAD + "identity,sa-1,payments,33.5,2026-03-01,\n",
        "\ufeff" + HEAD.replace("\n", "\r\n") + "identity,sa-1,payments,33.50,2026-03-01,\r\n",
        HEAD.replace(",", ";") + 'Identity;"sa-1";payments;33,5 %;01.03.2026;',
        HEAD.replace(",", "\t") + "identity\tsa-1\tpayments\t33,5\t2026-03-01\t\n",
        "Value, Entity_ID ,entity_type,valid_from,PERCENT\npayments,sa-1,identity,1.3.2026,33.5%\n",
        HEAD + 'identity," sa-1 ",payments,33.5,2026-03-01,\n,,,,,\n\n',
    ],
)
def test_spreadsheets_of_many_countries(text: str) -> None:
    """Separators, line ends, a byte order mark, the order of columns and decimal commas do not matter."""
    assert read_entries(text) == [ONE]


def test_the_line_that_names_the_separator() -> None:
    """Excel's line `sep=` is not data, but counts in line numbers."""
    text = "sep=;\r\n" + HEAD.replace(",", ";") + "identity;sa-1;a;;;\nuser;sa-1;a;;;\n"
    assert problems(text) == ["line 4: entity_type should be identity, resource or topic, not 'user'"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_encodings(encoding: str, tmp_path: Path) -> None:
    """The encodings that spreadsheets call CSV UTF-8 and Unicode text can be read."""
    file = tmp_path / "é.csv"
    file.write_text(HEAD + "topic,bestellungen,Zürich,,,\n", encoding=encoding)
    assert [each.value for each in source.read(file, "key").entries] == ["Zürich"]


def test_other_encodings_and_missing_files(tmp_path: Path) -> None:
    """The error names the line or the file."""
    with pytest.raises(ConfigurationError) as error:
        decoded(HEAD.encode() + "topic,a,Zürich,,,\n".encode("cp1252"))
    assert str(error.value) == "line 2: is not UTF-8; in a spreadsheet, save the file as “CSV UTF-8”"
    with pytest.raises(SourceError) as missing:
        source.read(tmp_path / "none.csv", "key")
    assert str(missing.value) == f"{tmp_path}/none.csv cannot be read: No such file or directory"


def test_every_mistake_is_told() -> None:
    """Every mistake is reported with its line."""
    lines = [
        "identity,sa-1",
        "identity,,payments,,,",
        "group,sa-1,payments,,,",
        "identity,sa-1,payments,a lot,,",
        "identity,sa-1,payments,,2026-02-30,03/01/2026",
        "identity,sa-1,payments,,2026-03-01,2026-03-01",
        f"identity,{'x' * 513},{'y' * 256},,,",
    ]
    assert problems(HEAD + "\n".join(lines)) == [
        "line 2: has 2 fields, and the head has 6",
        "line 3: entity_id should not be empty",
        "line 4: entity_type should be identity, resource or topic, not 'group'",
        "line 5: percent should be a number such as 60 or 33.5, not 'a lot'",
        "line 6: valid_from should be a day such as 2026-01-31, not '2026-02-30'",
        "line 6: valid_to should be a day such as 2026-01-31, not '03/01/2026'",
        "line 7: valid_to should be after valid_from: it is the first day without",
        "line 8: entity_id should have at most 512 characters",
        "line 8: value should have at most 255 characters",
    ]
    assert problems(HEAD + 'identity,"sa-1,payments') == ["line 2: is not CSV: unexpected end of data"]


def test_mistakes_in_the_head() -> None:
    """Missing, unknown and repeated columns are reported."""
    assert problems("") == [f"line 1: the column {name} is missing" for name in ("entity_type", "entity_id", "value")]
    assert problems("entity_type,entity_id,value,value,team\n") == [
        "line 1: 'team' is not a column of this file; these are entity_type, entity_id, value, percent, valid_from, "
        "valid_to",
        "line 1: the column value occurs twice",
    ]


def test_not_every_mistake_of_a_large_file() -> None:
    """Reading stops after a hundred mistakes."""
    assert len(problems(HEAD + "x,a,b,,,\n" * 500)) == 100


@given(
    st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=50).filter(lambda text: text.strip())
)
def test_what_the_export_guards_comes_back(text: str) -> None:
    """Apostrophes that guard against formulas are removed."""
    (entry,) = read_entries(f"entity_type,entity_id,value\ntopic,x,{csv_field(text)}\n")
    assert entry.value == text.strip()
    (row,) = csv.reader(io.StringIO(csv_field(text), newline=""))
    assert not row[0].startswith(("=", "+", "-", "@"))


def test_a_file_has_no_more_lines_than_a_category_can_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file is refused at the first line beyond the limit; the rest is not read."""
    monkeypatch.setattr(csv_file, "MOST_ENTRIES", 3)
    head, lines = "entity_type,entity_id,value\n", [f"identity,sa-{number},Payments\n" for number in range(9)]
    assert len(read_entries(head + "".join(lines[:3]))) == 3
    with pytest.raises(ConfigurationError) as raised:
        read_entries(head + "".join(lines))
    assert [str(each) for each in raised.value.problems] == [
        "line 5: has more than 3 lines, the most that a cost category can hold"
    ]
