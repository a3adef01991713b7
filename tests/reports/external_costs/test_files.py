"""Cost files are read exactly, and mistakes are reported with line and column."""

from __future__ import annotations

import csv
import io
import random
from datetime import date, timedelta
from decimal import Decimal

import pytest
from pydantic import ValidationError

from chargeback.errors import ConfigurationError
from chargeback.model.days import DayRange
from chargeback.reports.external_costs.files import (
    MOST_MISTAKES,
    CostFileError,
    CostMapping,
    parse_mapping,
    period_of,
    read_costs,
)

COLUMNS = {"amount": "Amount", "entity": "Resource", "product_type": "Type", "date": "Day"}
MAPPING = CostMapping.model_validate({"columns": COLUMNS})
HEAD = "Day,Resource,Type,Amount,Note\n"


def mistakes(text: str, mapping: CostMapping = MAPPING, currency: str = "USD") -> list[str]:
    """Return the mistakes in a file."""
    with pytest.raises(CostFileError) as caught:
        read_costs(text, mapping, currency)
    return [str(mistake) for mistake in caught.value.mistakes]


def written(random_: random.Random, amount: Decimal, decimal: str) -> str:
    """Return an amount as written in a file: plain, with thousands separators, or with a currency sign."""
    kind = random_.randrange(4)
    text = f"{amount:,f}" if kind == 1 else f"{amount:E}" if kind == 2 else f"{amount:f}"
    if decimal == ",":
        text = text.translate(str.maketrans(".,", ",."))
    sign, digits = ("-", text[1:]) if text.startswith("-") else ("", text)
    return f"{sign}${digits}" if kind == 3 else f" {text} "


def test_what_is_written_is_read() -> None:
    """For 500 random files: columns in any order, and any delimiter, decimal separator and date format."""
    random_ = random.Random(5)
    for _ in range(500):
        decimal, delimiter, form = random_.choice(".,"), random_.choice(",;\t|"), random_.choice([None, "%m/%d/%Y"])
        names = random_.sample(["Day", "Resource", "Type", "Amount", "Note, with; signs"], 5)
        expected, rows = [], []
        for _ in range(random_.randint(0, 4)):
            amount = Decimal(random_.randrange(-(10**20), 10**20)).scaleb(-random_.randint(0, 20))
            day = date(2026, 1, 1) + timedelta(days=random_.randrange(400))
            key = (random_.choice(["lkc-1", 'a "b",c', "ü"]), random_.choice(["Kafka - Base", "KAFKA_STORAGE"]))
            expected.append((day, (key[0], {"Kafka - Base": "KAFKA_BASE"}.get(key[1], key[1])), amount))
            values = {
                "Day": day.isoformat() if form is None else day.strftime(form),
                "Resource": key[0],
                "Type": f" {key[1]}",
                "Amount": written(random_, amount, decimal),
            }
            rows.append([values.get(name, "x\ny") for name in names])
        text = io.StringIO()
        csv.writer(text, delimiter=delimiter).writerows([names, *rows, []])
        mapping = CostMapping.model_validate(
            {
                "columns": COLUMNS,
                "decimal": decimal,
                "delimiter": delimiter,
                "date_format": form,
                "product_types": {"Kafka - Base": "KAFKA_BASE"},
            }
        )
        found = read_costs(random_.choice(["", "\ufeff"]) + text.getvalue(), mapping, "USD")
        assert [(cost.day, cost.key, cost.amount) for cost in found] == expected


def test_mistakes_have_a_line_and_a_column() -> None:
    """Every mistake is reported, up to twenty; a quoted field may span several lines."""
    assert mistakes("") == [f"line 1, column {name!r}: the file is empty" for name in COLUMNS.values()]
    assert mistakes("Day,Type,Amount\n") == [
        "line 1, column 'Resource': there is no such column; the columns are 'Day', 'Type', 'Amount'"
    ]
    assert mistakes(f'{HEAD}2026-01-31,lkc-1,T,"1,5","x\ny"\n31.1.2026,lkc-1,T,many,\n2026-02-30,a\n') == [
        "line 3, column 'Amount': '1,5' is not an amount such as 1234.56",
        "line 4, column 'Amount': 'many' is not an amount such as 1234.56",
        "line 4, column 'Day': '31.1.2026' is not a day such as 2026-01-31; the mapping may have a date_format",
        "line 5: has 2 fields, and the head has 5",
    ]
    american = MAPPING.model_copy(update={"date_format": "%m/%d/%Y"})
    assert mistakes(f"{HEAD}2026-01-31,lkc-1,T,1,\n", american) == [
        "line 2, column 'Day': '2026-01-31' is not a day written %m/%d/%Y"
    ]
    assert len(mistakes(HEAD + "x\n" * 100)) == MOST_MISTAKES
    assert mistakes(f'{HEAD}2026-01-31,"lkc') == ["line 2: is not CSV: unexpected end of data"]
    assert mistakes(f"{HEAD}2026-01-31,lkc-1,T,1e30,\n") == [
        "line 2, column 'Amount': '1e30' has more than 26 digits before the decimal separator"
    ]
    assert mistakes(f"{HEAD}2026-01-31,lkc-1,T,1e-101,\n") == [
        "line 2, column 'Amount': '1e-101' has more than 100 decimal places"
    ]
    assert mistakes(f"{HEAD}2026-01-31,lkc-1,T,-9e25,\n2026-01-31,lkc-1,T,1e25,\n") == [
        "line 3, column 'Amount': up to here, the amounts without their signs sum to more than 26 digits before the "
        "decimal point"
    ]


@pytest.mark.parametrize("amount", ["", "-", ".", "1,23", "1,2345", "NaN", "Infinity", "1 000", "0x10", "1e", "(5)"])
def test_what_is_no_amount(amount: str) -> None:
    """A text that is not clearly an amount is a mistake, including a comma that separates no thousands."""
    (mistake,) = mistakes(f'{HEAD}2026-01-31,lkc-1,T,"{amount}",\n')
    assert "is not an amount" in mistake


@pytest.mark.parametrize(
    ("amount", "currency", "is_read"),
    [
        *[(text, "USD", True) for text in ("$5.00", "-$5", "US$5.00", "USD 5.00", "5.00 USD", "$5.00 USD", "5$")],
        *[("$5.00 CAD", "CAD", True), ("CA$5.00", "CAD", True), ("5,000.00 €", "EUR", True), ("¥5", "JPY", True)],
        *[(text, "USD", False) for text in ("€5.00", "5.00 €", "EUR 5.00", "5.00 CAD", "$5.00 CAD", "A$5", "£5")],
        *[("$5.00", "CAD", False), ("$5.00", "EUR", False), ("¥5", "CNY", False), ("USD 5", "AUD", False)],
    ],
)
def test_signs_and_codes_of_currencies(amount: str, currency: str, is_read: bool) -> None:
    """Only the tenant's currency is accepted; a sign shared by several currencies means the first of them."""
    text = f'{HEAD}2026-01-31,lkc-1,T,"{amount}",\n'
    if is_read:
        assert read_costs(text, MAPPING, currency)[0].amount.copy_abs() in {Decimal(5), Decimal(5000)}
    else:
        (mistake,) = mistakes(text, MAPPING, currency)
        assert mistake.startswith(f"line 2, column 'Amount': {amount!r}")
        assert f"the costs here are in {currency}" in mistake


def test_a_column_with_the_currency() -> None:
    """Every line must have the tenant's currency, which also decides what an ambiguous sign means."""
    mapping = CostMapping.model_validate({"columns": COLUMNS | {"currency": "Note"}})
    (cost,) = read_costs(f"{HEAD}2026-01-31,lkc-1,T,$5.00,cad\n", mapping, "CAD")
    assert cost.amount == 5
    assert mistakes(f"{HEAD}2026-01-31,a,T,1,USD\n2026-01-31,a,T,€2,EUR\n2026-01-31,a,T,3,\n", mapping) == [
        "line 3, column 'Note': 'EUR' is not USD, the currency of the costs here",
        "line 3, column 'Amount': '€2' is in EUR, and the costs here are in USD",
        "line 4, column 'Note': '' is not USD, the currency of the costs here",
    ]


def test_columns_that_are_there_twice() -> None:
    """A column has one meaning and a unique name; columns without a meaning may share a name."""
    with pytest.raises(ConfigurationError, match="amount and entity should not be the same column, 'cost'"):
        parse_mapping("columns: {amount: cost, entity: cost}")
    assert mistakes("Day,Resource,Type,Amount, Amount ,Amount\n") == [
        "line 1, column 'Amount': there are 3 columns with this name; rename all but one of them"
    ]
    assert read_costs("Day,Resource,Type,Amount,,\n", MAPPING, "USD") == []


def test_the_period() -> None:
    """The period defaults to the days of the file."""
    costs = read_costs(f"{HEAD}2026-01-31,a,b,1,\n2026-01-02 00:00:00,a,b,1,\n", MAPPING, "USD")
    assert period_of(costs, None, None) == DayRange(date(2026, 1, 2), date(2026, 2, 1))
    assert period_of(costs, date(2026, 1, 1), date(2026, 1, 3)) == DayRange(date(2026, 1, 1), date(2026, 1, 4))
    assert period_of([], None, date(2026, 1, 3)) is None
    assert period_of([], date.min, date.max) == DayRange(date(1970, 1, 2), date(2999, 12, 31))


@pytest.mark.parametrize("form", ["%m/%Y", "", "%Q", "%d.%m", "%H:%M"])
def test_forms_of_days_that_are_refused(form: str) -> None:
    """A date format without day, month or year is rejected."""
    with pytest.raises(ValidationError, match="should have day, month and year"):
        CostMapping.model_validate({"columns": COLUMNS, "date_format": form})
