"""The bill of FOCUS files: rows summed to billing lines of UTC days, with all digits.

The engine reads each file as it is: amounts are decimals from the text of the file on. A Parquet file may hold them as
binary numbers; then the shortest decimal that is the same binary number counts.

Rows of one UTC day that differ in nothing that a billing line shows are one line. A row of several days, such as a
monthly fee, is spread over them in proportion to the time on each, by the largest remainder method on integers of
10⁻¹².
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

import duckdb

from chargeback.allocation.policies import best_match
from chargeback.allocation.split import split_exactly
from chargeback.ecosystems.constructed.bill import exact_text
from chargeback.ecosystems.contract import GatheredDay, TenantContext
from chargeback.ecosystems.focus_files.files import SOURCE, BillFile, Files, current_files
from chargeback.ecosystems.focus_files.settings import TAG_PREFIX, ColumnChoice, FocusFilesSettings
from chargeback.errors import SourceDataError, SourceTooLarge, Stopped
from chargeback.model.billing import BillingLine
from chargeback.model.days import ONE_DAY, DayRange, start_of_day
from chargeback.model.inventory import KAFKA_CLUSTER, UNALLOCATED
from chargeback.model.money import from_units, to_amount, to_units

#: How an amount is read: more decimals than this are refused, because a sum would lose them.
_PLACES: Final = 20
_DECIMAL: Final = f"DECIMAL(38,{_PLACES})"
_QUANTITY: Final = "DECIMAL(38,12)"
_DAY: Final = 86_400_000_000
_REQUIRED: Final = ("ChargePeriodStart", "ChargePeriodEnd", "BillingCurrency", "ServiceName")
#: The columns that tell versions of FOCUS apart: some that each added. Between 1.3 and 1.4 no file can be told apart.
_NEW_COLUMNS: Final = (
    (
        "1.1",
        ("SkuMeter", "SkuPriceDetails", "ServiceSubcategory", "CapacityReservationId", "CommitmentDiscountQuantity"),
    ),
    ("1.2", ("InvoiceId", "PricingCurrency", "BillingAccountType", "SubAccountType", "PricingCurrencyEffectiveCost")),
    ("1.3", ("AllocatedMethodId", "AllocatedResourceId", "AllocatedTags", "ContractApplied", "ServiceProviderName")),
)
#: The product type, if the settings name no column: the first of these with a value.
_PRODUCT_TYPES: Final = ("SkuMeter", "SkuId", "ServiceName")
#: Columns that a billing line keeps as ``key=value`` in its tier, to distinguish lines with the same product type.
_KEPT: Final = ("ChargeClass", "PricingCategory", "RegionId", "SubAccountId", "CommitmentDiscountStatus")
_USAGE: Final = "Usage"
#: The type of a part of a resource that one identity pays.
OWNED_PART: Final = "owned_part"
_MEMORY: Final = "768MB"
_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - instants of the engine have no zone, and are in UTC
_BINARY: Final = frozenset({"DOUBLE", "FLOAT"})


@dataclass(frozen=True)
class _Schema:
    """Files with the same columns: each with its path, and the name and type of each column by its name in lower
    case."""

    files: list[tuple[BillFile, str]]
    columns: Mapping[str, tuple[str, str]]


@dataclass(frozen=True)
class _Query:
    """The part of a statement that reads files of one schema; ``parameters`` collects those of the statement."""

    schema: _Schema
    parameters: dict[str, object]

    def give(self, value: object) -> str:
        """Return the placeholder of a value."""
        name = f"p{len(self.parameters)}"
        self.parameters[name] = value
        return f"${name}"

    def has(self, name: str) -> bool:
        """Return whether the files have a column."""
        return name.lower() in self.schema.columns

    def text(self, name: str) -> str:
        """Return the value of a column or of ``tag:NAME`` as text; null where it is missing or empty."""
        if name.startswith(TAG_PREFIX):
            return self._tag(name.removeprefix(TAG_PREFIX))
        if not self.has(name):
            return "CAST(NULL AS VARCHAR)"
        column = self._name(name)
        return f"nullif({column if self._type(name) == 'VARCHAR' else f'CAST({column} AS VARCHAR)'}, '')"

    def _tag(self, name: str) -> str:
        if not self.has("Tags"):
            return "CAST(NULL AS VARCHAR)"
        column, is_text = self._name("Tags"), self.schema.columns["tags"][1] == "VARCHAR"
        document = f"TRY_CAST({column} AS JSON)" if is_text else f"CAST(to_json({column}) AS JSON)"
        path = self.give(f'$."{name.replace(chr(34), chr(92) + chr(34))}"')
        return f"nullif(json_extract_string({document}, {path}), '')"

    def number(self, name: str) -> str:
        """Return the value of a column as a decimal with at most 20 places; null where it is missing or no number.
        Decimals remain of their type, in which the engine sums them fastest."""
        if not self.has(name):
            return f"CAST(NULL AS {_DECIMAL})"
        decimal = re.fullmatch(r"DECIMAL\(\d+,(\d+)\)", self._type(name))
        if decimal is not None and int(decimal[1]) <= _PLACES:
            return self._name(name)
        return f"TRY_CAST({self.text(name)} AS {_DECIMAL})"

    def is_too_long(self, name: str) -> str:
        """Return the condition that a column has more places than are read. A binary number has been rounded before."""
        if self._type(name) in _BINARY or self.number(name) == self._name(name):
            return "false"
        return f"regexp_matches({self.text(name)}, '^[+-]?[0-9]*[.][0-9]{{{_PLACES + 1},}}$')"

    def instant(self, name: str) -> str:
        """Return the value of a column as microseconds since 1970 in UTC; null where it is no instant."""
        column, kind = self._name(name), self._type(name)
        if kind == "VARCHAR":
            column = f"TRY_CAST({column} AS TIMESTAMPTZ)"
        elif not kind.startswith("TIMESTAMP"):
            column = f"TRY_CAST({column} AS TIMESTAMP)"
        return f"epoch_us({column})"

    def relation(self) -> str:
        """Return the rows of the files, with ``filename``."""
        paths = self.give([path for _, path in self.schema.files])
        if self.schema.files[0][0].is_parquet:
            return f"read_parquet({paths}, filename=true)"
        return f"read_csv({paths}, filename=true, {_CSV_FORMAT})"

    def _type(self, name: str) -> str:
        return self.schema.columns[name.lower()][1]

    def _name(self, name: str) -> str:
        return _quoted(self.schema.columns[name.lower()][0])


_CSV_FORMAT: Final = (
    "all_varchar=true, header=true, delim=',', quote='\"', escape='\"', nullstr=['', 'NULL', 'null'], strict_mode=true"
)


@dataclass(frozen=True, slots=True)
class _Charge:
    """The rows of one period that are one billing line, summed."""

    start: datetime
    end: datetime
    category: str
    product_type: str
    resource_id: str | None
    resource_name: str | None
    resource_type: str | None
    identity: str | None
    unit: str | None
    unit_price: Decimal | None
    tier: str | None
    cost: Decimal
    list_cost: Decimal | None
    quantity: Decimal | None
    description: str | None


class FocusBill:
    """Reads the bill of one tenant."""

    def __init__(self, context: TenantContext, settings: FocusFilesSettings, files: Files) -> None:
        self._context = context
        self._settings = settings
        self._bill = settings.bill
        self._files = files

    @property
    def _kept(self) -> tuple[str, ...]:
        """The columns and tags that a line keeps in its tier."""
        return tuple(sorted({*_KEPT, *self._bill.attributes}))

    @property
    def _checked(self) -> tuple[str, ...]:
        """The columns that every row needs."""
        return ("ChargePeriodStart", "ChargePeriodEnd", self._bill.cost_column, "BillingCurrency")

    def days(self, days: DayRange) -> Iterator[GatheredDay]:
        """Yield the bill of each day.

        Raises:
            SourceUnavailable: the files cannot be read now.
            SourceDataError: a file or a row cannot be understood; the message names them.
        """
        lines: dict[date, list[BillingLine]] = {day: [] for day in days}
        with self._open() as (engine, schemas):
            for charge in self._charges(engine, schemas, days):
                for line in self._lines(charge):
                    if line.day in lines:
                        lines[line.day].append(line)
        for day, found in lines.items():
            yield GatheredDay(day, found)

    def describe(self) -> str:
        """Return how many files there are, and what of them could be lost in reading.

        Raises:
            SourceError: as for :meth:`days`.
        """
        with self._open() as (_, schemas):
            files = sorted((file for each in schemas for file, _ in each.files), key=lambda file: file.name)
            cost = self._bill.cost_column.lower()
            binary = sum(len(each.files) for each in schemas if each.columns[cost][1] in _BINARY)
            versions = sorted({version_of(each.columns) for each in schemas})
        size = sum(file.size for file in files) / 2**20
        note = f"; in {binary} of them {self._bill.cost_column} is a binary number" if binary else ""
        names = files[0].name if len(files) == 1 else f"{len(files)} files from {files[0].name} to {files[-1].name}"
        return f"{names} in FOCUS {', '.join(versions)}, {size:.1f} MiB{note}"

    def services(self, days: DayRange) -> tuple[dict[str, Decimal], list[str]]:
        """Return the cost of each service that the filter leaves, the largest first, and the services left out.

        Raises:
            SourceError: as for :meth:`days`.
        """
        parameters: dict[str, object] = {}
        start, end = (_microseconds_of(start_of_day(day)) for day in (days.start, days.end))
        with self._open() as (engine, schemas):
            parts = [
                f"""SELECT coalesce({query.text("ServiceName")}, 'Other') AS service,
                           CAST({query.number(self._bill.cost_column)} AS {_DECIMAL}) AS cost,
                           {self._conditions(query)} AS is_kept
                    FROM {query.relation()}
                    WHERE {query.instant("ChargePeriodStart")} < {end}
                          AND {query.instant("ChargePeriodEnd")} > {start}"""
                for query in (_Query(each, parameters) for each in schemas)
            ]
            found = _run(
                engine,
                schemas,
                f"""SELECT service, bool_or(is_kept), coalesce(sum(cost) FILTER (is_kept), 0)
                    FROM ({_union(parts)}) GROUP BY ALL ORDER BY 3 DESC, 1""",
                parameters,
            )
        kept = {name: to_amount(cost).normalize() for name, is_kept, cost in found if is_kept}
        return kept, [name for name, is_kept, _ in found if not is_kept]

    def payers(self, days: DayRange) -> list[tuple[str, str]]:
        """Return the part of a resource that each identity pays, and the identity, by the column ``identity``.

        Raises:
            SourceError: as for :meth:`days`.
        """
        found = set()
        with self._open() as (engine, schemas):
            for charge in self._charges(engine, schemas, days):
                payer = self._payer(charge)
                if payer is not None:
                    found.add((owned(self._resource_of(charge), payer), payer))
        return sorted(found)

    def _resource_of(self, charge: _Charge) -> str:
        """Return the resource that a charge is for: the cluster, unless the settings say otherwise."""
        return _mapped(charge.resource_id, self._bill.resource) or self._settings.cluster_id

    def _payer(self, charge: _Charge) -> str | None:
        """Return the identity that the files name; None without one, and for what another chargeback left
        unallocated."""
        payer = _mapped(charge.identity, self._bill.identity)
        return None if payer == UNALLOCATED else payer

    def _type_of(self, charge: _Charge, *, is_cluster: bool, is_owned: bool) -> str:
        if is_owned:
            return OWNED_PART
        return KAFKA_CLUSTER if is_cluster else _word(charge.resource_type)

    @contextmanager
    def _open(self) -> Iterator[tuple[duckdb.DuckDBPyConnection, list[_Schema]]]:
        """Open an engine, and the files that count, those of one schema together."""
        files = current_files(self._files, self._bill, self._context.now())
        with duckdb.connect(config={"memory_limit": _MEMORY, "threads": 2}) as engine:
            engine.execute("SET TimeZone = 'UTC'")
            schemas: dict[object, _Schema] = {}
            for file in files:
                one = _Schema([(file, str(self._files.local(file)))], {})
                parameters: dict[str, object] = {}
                relation = _Query(one, parameters).relation()
                described = _run(engine, [one], f"DESCRIBE SELECT * EXCLUDE filename FROM {relation}", parameters)
                columns = {str(name).lower(): (str(name), str(kind)) for name, kind, *_ in described}
                self._require(file, columns)
                same = schemas.setdefault((file.is_parquet, tuple(columns.values())), _Schema([], columns))
                same.files.extend(one.files)
            self._files.keep(files)
            yield engine, list(schemas.values())

    def _require(self, file: BillFile, columns: Mapping[str, object]) -> None:
        choices = (self._bill.resource, self._bill.product_type, self._bill.identity)
        chosen = [each.column for each in choices if each is not None] + list(self._bill.attributes)
        asked = [*_REQUIRED, self._bill.cost_column]
        asked += ["Tags" if name.startswith(TAG_PREFIX) else name for name in chosen]
        asked += ["Tags"] if self._bill.filter.tags else []
        if missing := [name for name in dict.fromkeys(asked) if name.lower() not in columns]:
            raise SourceDataError(f"{file.name} has no column {', '.join(missing)}", source=SOURCE)
        version = self._bill.version
        newer = [each for since, names in _NEW_COLUMNS if since > version for each in names if each.lower() in columns]
        if version != "auto" and newer:
            raise SourceDataError(
                f"{file.name} is of a newer version than bill.version {version}: it has {newer[0]}", source=SOURCE
            )

    def _charges(
        self, engine: duckdb.DuckDBPyConnection, schemas: Sequence[_Schema], days: DayRange
    ) -> Iterator[_Charge]:
        """Yield the charges that overlap some days. The rows of all files are summed in one statement, so how they are
        divided into files changes nothing."""
        if self._context.stop.is_set():
            raise Stopped("the work was asked to stop", tenant=self._context.tenant_name)
        parameters: dict[str, object] = {}
        parts = [self._part(_Query(each, parameters), days) for each in schemas]
        tier = ", ".join(f"'{_escaped(name)}=' || {_quoted(name)}" for name in self._kept)
        sums = f"""WITH part AS ({_union(parts)})
            SELECT min(wrong), period_start, period_end,
                   if(charge_category = '{_USAGE}', coalesce(service, 'Other'), charge_category) AS category,
                   coalesce(product_type, charge_category) AS product_type,
                   resource_id, resource_name, resource_type, identity, unit, unit_price,
                   nullif(concat_ws(';', {tier}), '') AS tier,
                   sum(cost), if(bool_and(has_list), sum(list_cost), NULL),
                   if(bool_and(has_quantity), CAST(sum(quantity) AS {_QUANTITY}), NULL), min(description)
            FROM part GROUP BY ALL ORDER BY ALL NULLS LAST"""
        for wrong, start, end, *row in _run(engine, schemas, sums, parameters):
            if wrong is not None:
                raise self._refusal(engine, schemas, str(wrong))
            yield _Charge(_EPOCH + timedelta(microseconds=start), _EPOCH + timedelta(microseconds=end), *row)

    def _part(self, query: _Query, days: DayRange) -> str:
        """Return the rows of files of one schema that overlap some days, as SQL: summed by the columns as they are, so
        that texts are only made of what is left. ``wrong`` is a file with a row that cannot be understood."""
        chosen = self._bill.product_type
        types = _PRODUCT_TYPES if chosen is None else (chosen.column,)
        resource = self._bill.resource
        of_resource = ("ResourceName", "ResourceType") if resource is not None else ()
        first, end = (_microseconds_of(start_of_day(day)) for day in (days.start, days.end))
        wrong = f"{self._problem(query)} IS NOT NULL"
        nothing = "CAST(NULL AS VARCHAR)"
        names = (query.text(name) for name in of_resource) if of_resource else (nothing, nothing)
        prices = (f"CAST({query.number(name)} AS {_QUANTITY})" for name in ("ContractedUnitPrice", "ListUnitPrice"))
        quantities = (query.number(name) for name in ("PricingQuantity", "ConsumedQuantity"))
        kept = ", ".join(f"{query.text(name)} AS {_quoted(name)}" for name in self._kept)
        identity = self._bill.identity
        return f"""SELECT min(if(wrong, filename, NULL)) AS wrong,
                if(first_day = last_day, first_day * {_DAY}, charge_start) AS period_start,
                if(first_day = last_day, (first_day + 1) * {_DAY}, charge_end) AS period_end,
                service, charge_category, product_type, resource_id, resource_name, resource_type, identity, unit,
                unit_price, {", ".join(map(_quoted, self._kept))},
                CAST(sum(cost) AS {_DECIMAL}) AS cost, count(list_cost) = count(*) AS has_list,
                CAST(sum(list_cost) AS {_DECIMAL}) AS list_cost, count(quantity) = count(*) AS has_quantity,
                CAST(sum(quantity) AS {_DECIMAL}) AS quantity, min(description) AS description
            FROM (SELECT filename, {wrong} AS wrong, {query.instant("ChargePeriodStart")} AS charge_start,
                    {query.instant("ChargePeriodEnd")} AS charge_end,
                    charge_start // {_DAY} AS first_day, (charge_end - 1) // {_DAY} AS last_day,
                    {query.text("ServiceName")} AS service,
                    coalesce({query.text("ChargeCategory")}, '{_USAGE}') AS charge_category,
                    coalesce({", ".join(map(query.text, types))}) AS product_type,
                    {nothing if resource is None else query.text(resource.column)} AS resource_id,
                    {" AS resource_name, ".join(names)} AS resource_type,
                    {nothing if identity is None else query.text(identity.column)} AS identity,
                    coalesce({query.text("PricingUnit")}, {query.text("ConsumedUnit")}) AS unit,
                    coalesce({", ".join(prices)}) AS unit_price, {kept},
                    {query.number(self._bill.cost_column)} AS cost, {query.number("ListCost")} AS list_cost,
                    coalesce({", ".join(quantities)}) AS quantity, {query.text("ChargeDescription")} AS description
                FROM {query.relation()}
                WHERE {self._conditions(query)})
            WHERE wrong OR (charge_start < {end} AND charge_end > {first}) GROUP BY ALL"""

    def _problem(self, query: _Query) -> str:
        """Return the name of what is wrong with a row, or null, as SQL."""
        cost = self._bill.cost_column
        start, end = query.instant("ChargePeriodStart"), query.instant("ChargePeriodEnd")
        return f"""CASE WHEN {start} IS NULL THEN 'ChargePeriodStart' WHEN {end} IS NULL THEN 'ChargePeriodEnd'
            WHEN {end} <= {start} THEN 'period' WHEN {query.number(cost)} IS NULL THEN '{cost}'
            WHEN {query.is_too_long(cost)} THEN 'places'
            WHEN {query.text("BillingCurrency")} IS DISTINCT FROM {query.give(self._context.currency)}
            THEN 'BillingCurrency' END"""

    def _conditions(self, query: _Query) -> str:
        """Return the filter as SQL."""
        chosen = self._bill.filter
        every = [
            _any_like(query, query.text("ServiceName"), chosen.services),
            _any_like(query, query.text("ResourceId"), chosen.resources),
            _any_like(
                query, f"coalesce({query.text('SubAccountId')}, {query.text('BillingAccountId')})", chosen.accounts
            ),
            *(_any_like(query, query.text(f"{TAG_PREFIX}{name}"), (value,)) for name, value in chosen.tags.items()),
        ]
        return " AND ".join(each for each in every if each) or "true"

    def _refusal(self, engine: duckdb.DuckDBPyConnection, schemas: Sequence[_Schema], path: str) -> SourceDataError:
        """Return the error that names the first row of a file with a problem."""
        parameters: dict[str, object] = {}
        file, columns = next((file, each.columns) for each in schemas for file, local in each.files if local == path)
        one = _Query(_Schema([(file, path)], columns), parameters)
        values = ", ".join(one.text(name) for name in self._checked)
        (number, problem, *shown), *_ = _run(
            engine,
            [one.schema],
            f"""SELECT number, {self._problem(one)} AS problem, {values}
                FROM (SELECT *, row_number() OVER () AS number FROM {one.relation()})
                WHERE problem IS NOT NULL AND {self._conditions(one)} ORDER BY number LIMIT 1""",
            parameters,
        )
        name = {"places": self._bill.cost_column, "period": "ChargePeriodEnd"}.get(problem, problem)
        value = dict(zip(self._checked, shown, strict=True))[name]
        reason = {
            "BillingCurrency": f"the tenant's currency is {self._context.currency}; filter the rows, or"
            " configure a tenant for each currency",
            "places": f"it has more than {_PLACES} decimals",
            "period": "the period ends before it begins",
        }.get(problem, "a number is needed" if problem.endswith("Cost") else "an instant in ISO 8601 is needed")
        return SourceDataError(f"{file.name}, row {number}: {name} is {value!r}: {reason}", source=SOURCE)

    def _lines(self, charge: _Charge) -> Iterator[BillingLine]:
        """Yield the billing lines of a charge: one of each day."""
        settings = self._settings
        resource_id = self._resource_of(charge)
        is_cluster = resource_id == settings.cluster_id
        payer = self._payer(charge)
        if payer is not None:
            resource_id = owned(resource_id, payer)
        for day, cost, list_cost, quantity in _spread(charge):
            yield BillingLine(
                day=day,
                timestamp=start_of_day(day),
                resource_id=resource_id,
                resource_name=settings.display_name if is_cluster else charge.resource_name,
                resource_type=self._type_of(charge, is_cluster=is_cluster, is_owned=payer is not None),
                product_category=charge.category,
                product_type=_mapped(charge.product_type, self._bill.product_type) or charge.product_type,
                total_cost=cost,
                original_amount=list_cost,
                discount_amount=None if list_cost is None else list_cost - cost,
                currency=self._context.currency,
                quantity=quantity,
                unit=charge.unit,
                unit_price=charge.unit_price,
                description=charge.description,
                tier=charge.tier,
                original_text=_original(charge, cost),
            )


def version_of(columns: Collection[str]) -> str:
    """Return the version of FOCUS that a file with these columns, in lower case, has at least.

    >>> version_of(["billedcost"]), version_of(["billedcost", "skumeter", "invoiceid"])
    ('1.0', '1.2')
    """
    found = [since for since, names in _NEW_COLUMNS if any(name.lower() in columns for name in names)]
    return found[-1] if found else "1.0"


def owned(resource_id: str, identity_id: str) -> str:
    """Return the id of the part of a resource that one identity pays."""
    return f"{resource_id}:{identity_id}"


def _run(
    engine: duckdb.DuckDBPyConnection, schemas: Sequence[_Schema], sql: str, parameters: Mapping[str, object]
) -> list[tuple[Any, ...]]:
    """Return the rows of a statement over some files.

    Raises:
        SourceTooLarge: a sum has too many digits.
        SourceDataError: a file cannot be read; the message names it.
    """
    try:
        return engine.execute(sql, dict(parameters)).fetchall()
    except duckdb.OutOfRangeException as error:
        raise SourceTooLarge(f"a sum of the bill has too many digits: {_line(error)}", source=SOURCE) from error
    except duckdb.Error as error:
        message = _line(error)
        for file, path in (each for schema in schemas for each in schema.files):
            message = message.replace(path, file.name)
        raise SourceDataError(f"the bill cannot be read: {message}", source=SOURCE) from error


def _union(parts: Sequence[str]) -> str:
    return " UNION ALL ".join(parts)


def _spread(charge: _Charge) -> Iterator[tuple[date, Decimal, Decimal | None, Decimal | None]]:
    """Yield the cost, the list cost and the quantity of each UTC day of a charge, in proportion to the time on it."""
    days = DayRange(charge.start.date(), (charge.end - datetime.resolution).date() + ONE_DAY)
    if len(days) == 1:
        list_cost = None if charge.list_cost is None else to_amount(charge.list_cost)
        yield days.start, to_amount(charge.cost), list_cost, charge.quantity
        return
    weights = [(day.isoformat(), _microseconds(charge, day)) for day in days]
    columns = [
        [None] * len(weights)
        if amount is None
        else [from_units(units) for _, units in split_exactly(to_units(amount), weights)]
        for amount in (charge.cost, charge.list_cost, charge.quantity)
    ]
    for day, cost, list_cost, quantity in zip(days, *columns, strict=True):
        if cost is not None:
            yield day, cost, list_cost, quantity


def _microseconds_of(instant: datetime) -> int:
    return (instant.replace(tzinfo=None) - _EPOCH) // datetime.resolution


def _microseconds(charge: _Charge, day: date) -> int:
    midnight = start_of_day(day).replace(tzinfo=None)
    overlap = min(charge.end, midnight + ONE_DAY) - max(charge.start, midnight)
    return overlap // datetime.resolution


def _original(charge: _Charge, cost: Decimal) -> str | None:
    """Return the exact sum of the rows if the line has less digits, or only a part of it."""
    if charge.cost == cost:
        return None
    text = f"total_cost={exact_text(Fraction(charge.cost))}"
    return (
        f"{text} from {charge.start.isoformat()}Z to {charge.end.isoformat()}Z"
        if charge.end - charge.start > ONE_DAY
        else text
    )


def _mapped(value: str | None, choice: ColumnChoice | None) -> str | None:
    if value is None or choice is None:
        return value
    found = best_match(value, choice.map)
    return value if found is None else choice.map[found]


def _word(text: str | None) -> str:
    """Return a resource type as one word of the inventory."""
    word = re.sub(r"[^a-z0-9]+", "_", (text or "").lower()).strip("_")
    return word or "unknown"


def _any_like(query: _Query, value: str, patterns: Sequence[str]) -> str:
    """Return the condition that a value matches one of some patterns; empty without patterns."""
    tests = [f"{value} LIKE {query.give(_like(pattern))} ESCAPE '\\'" for pattern in patterns]
    return f"coalesce({' OR '.join(tests)}, false)" if tests else ""


def _like(pattern: str) -> str:
    return re.sub(r"([\\%_])", r"\\\1", pattern).replace("*", "%")


def _escaped(text: str) -> str:
    return text.replace("'", "''")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]
