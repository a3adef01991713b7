"""The export in FOCUS, the FinOps Open Cost and Usage Specification."""

import re
from collections.abc import Iterator
from typing import Annotated, Any, Final, Literal

from fastapi import Body, Query
from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema, field_validator
from starlette.responses import Response

from chargeback.access.caller import Right
from chargeback.api.parameters import (
    AsOf,
    DateRangeParameters,
    FactsParameters,
    PeriodId,
    StrictModel,
)
from chargeback.api.problems import InvalidParameter, InvalidRequest
from chargeback.api.responses import csv_file
from chargeback.api.routes.contracts import configured, standing_of
from chargeback.api.routes.statements import By
from chargeback.api.routing import CSV, Routes
from chargeback.api.selecting import Basis
from chargeback.api.tenant_requests import (
    CATEGORIES_HEADER,
    MEDIA_TYPES,
    Export,
    Facts,
    FactsRequest,
    FileRequest,
    RowsFile,
    category_versions,
    check_posted,
    rows_file,
)
from chargeback.model.accounting import AccountingPeriod
from chargeback.model.days import ONE_DAY, DayRange
from chargeback.model.focus import VERSIONS
from chargeback.reports.answers import ResponseModel
from chargeback.reports.closing.focus_invoices import (
    FocusBillingPeriod,
    FocusInvoiceDetail,
    billing_periods,
    focus_csv_text,
    invoice_details,
)
from chargeback.reports.closing.preview import groupings
from chargeback.reports.focus.columns import FocusLayout, all_columns
from chargeback.reports.focus.commitments import FocusContractCommitment, contract_commitments
from chargeback.reports.focus.file import FocusFormat, FocusSource, focus_file
from chargeback.reports.focus.metadata import FocusMetadata, focus_metadata
from chargeback.store.queries.reader import TenantReader

FILTERS = "filters"


def _utc(value: object) -> object:
    if value != "UTC":
        raise ValueError("should be UTC: the days and months of FOCUS data are those of UTC")
    return value


_EVERY: Final = {"has_programme": True, "has_contracts": True}
_NAMES = sorted({column.name for each in VERSIONS for column in all_columns(each, (), **_EVERY)})
_CATEGORY = "^x_CostCategory[A-Za-z0-9_]+$"


def _known_column(name: str) -> str:
    if name not in _NAMES and not re.fullmatch(_CATEGORY, name):
        raise ValueError(f"should be one of {', '.join(_NAMES)}, or x_CostCategory<Key>")
    return name


ColumnName = Annotated[
    str,
    AfterValidator(_known_column),
    WithJsonSchema({"anyOf": [{"enum": _NAMES}, {"type": "string", "pattern": _CATEGORY}]}),
]


class FocusFields(StrictModel):
    """Parameters of data in FOCUS."""

    version: Literal["1.2", "1.4"] = Field(
        default="1.2",
        description="The version of FOCUS: `1.2`, whose official rules are checked, or `1.4`, which is followed, but "
        "not officially validated.",
    )
    split: Literal["identities", "topics", "none"] = Field(
        default="identities",
        description="How the billing lines are divided. Each option is a dataset of its own with the whole bill: "
        "loading two of them counts everything twice. `topics` does not divide lines that are not attributed to "
        "topics, `none` divides no line.",
    )
    columns: list[ColumnName] = Field(
        default=[],
        description="Only these columns, in this order; default: all. Cost categories are "
        "`x_CostCategory<Key>`; the metadata of a version lists its columns.",
        json_schema_extra={"uniqueItems": True},
    )

    @field_validator("columns")
    @classmethod
    def _distinct(cls, value: list[str]) -> list[str]:
        if len(set(value)) < len(value):
            raise ValueError("should not name a column twice")
        return value

    @property
    def layout(self) -> FocusLayout:
        """Return the layout of the data."""
        return FocusLayout(self.version, self.split, tuple(self.columns))


class FocusRequest(FocusFields, DateRangeParameters):
    """Parameters of the export in FOCUS; all fields have defaults."""

    as_of: AsOf = None
    basis: Basis = "accrual"
    timezone: Annotated[Literal["UTC"], BeforeValidator(_utc)] = Field(
        default="UTC", description="Always UTC: the days and months of FOCUS data are those of UTC."
    )
    format: FocusFormat = Field(
        default="csv",
        description="`parquet` has exact decimals, and instants; in `csv` decimals are plain text, and texts are not "
        "altered for spreadsheets.",
    )

    @classmethod
    def cross_checks(cls, raw: dict[str, Any], now: Any) -> list[InvalidParameter]:
        """Check the dates, and that nothing is filtered."""
        wrong = super().cross_checks(raw, now)
        if FILTERS in raw:
            wrong.append(InvalidParameter(FILTERS, "cannot be given: some of the rows would not sum to the bill"))
        return wrong


class FocusMetadataQuery(FocusFields, FactsParameters):
    """Parameters of the metadata."""

    basis: Basis = "accrual"


def utc_days(params: DateRangeParameters, lookback_days: int) -> DayRange:
    """Return the requested UTC days."""
    start, end = params.days(lookback_days)
    return DayRange(start, end + ONE_DAY)


router = Routes(prefix="/tenants/{tenant_name}/export/focus", tags=["Export"])

_FILE: Final[dict[str, Any]] = {
    "description": "The rows by day, line, portion and payer.",
    "content": {
        MEDIA_TYPES["csv"]: {"schema": {"type": "string"}},
        MEDIA_TYPES["parquet"]: {"schema": {"type": "string", "format": "binary"}},
    },
    "headers": {
        "Content-Disposition": {"schema": {"type": "string"}, "description": "`attachment`, with a file name."},
        **CATEGORIES_HEADER,
    },
}


@router.post("", response_class=Response, needs=Right.EXPORT, whole=True, responses={200: _FILE})
def export_focus(request: Export, params: Annotated[FocusRequest, Body(default_factory=FocusRequest)]) -> RowsFile:
    """Stream the bill in FOCUS: one row for each share of a billing line, for the calculated days of a range.

    The rows replace those of the provider: never load both. Their `BilledCost` sums exactly to the bill, and list costs
    and quantities sum exactly to those of their lines.

    With `basis=posted`, dates must be whole UTC months. The rows of a month are then those as of its closing, followed
    by the corrections of earlier months: reversed and replaced rows with `ChargeClass` `Correction`, the billing period
    of the month and the charge period of their day.

    If the connection closes before the end of the transfer, the export has failed, and the file is incomplete.
    """
    tenant = request.tenant
    layout, days = params.layout, utc_days(params, tenant.lookback_days)

    def _read(reader: TenantReader) -> Iterator[memoryview]:
        source = _source(request, reader, params, days)
        file.headers.update(category_versions(reader))
        yield from focus_file(source, layout, days, params.format)

    file = rows_file(f"focus-{layout.version}-{layout.split}", params.format, _read)
    return file


@router.get(
    "/metadata",
    needs=Right.READ,
    whole=True,
    also=lambda request, _: [request.tenant.focus.discount, bool(request.tenant.contracts)],
)
def show_focus_metadata(request: Facts, params: Annotated[FocusMetadataQuery, Query()]) -> FocusMetadata:
    """Describe the export in FOCUS: its columns, and which UTC days are complete.

    `page` and `timezone` are ignored."""
    layout, days = params.layout, utc_days(params, request.tenant.lookback_days)
    return focus_metadata(_source(request, request.reader, params, days), layout, days)


class FocusBillingPeriods(ResponseModel):
    """The dataset *Billing Period* of FOCUS 1.4."""

    items: list[FocusBillingPeriod]


class FocusInvoiceDetails(ResponseModel):
    """The dataset *Invoice Detail* of FOCUS 1.4."""

    items: list[FocusInvoiceDetail]


class FocusContractCommitments(ResponseModel):
    """The dataset *Contract Commitment* of FOCUS 1.4."""

    items: list[FocusContractCommitment]


class InvoiceDetailsQuery(FactsParameters):
    """Parameters of the statements in FOCUS."""

    by: By | None = Field(
        default=None, description="The grouping of the statements. Default: the first of `closing.by`."
    )
    period: PeriodId | None = Field(default=None, description="Only statements of this month.", examples=["2026-10"])


@router.get("/billing-periods", needs=Right.READ, whole=True, files=CSV)
def list_focus_billing_periods(
    request: Facts, params: Annotated[FactsParameters, Query()]
) -> FocusBillingPeriods | Response:
    """List the months of the books and the first open month, as the dataset *Billing Period* of FOCUS 1.4. The list is
    empty if no month is closed. Dates, `timezone` and page parameters are ignored."""
    posted = request.context.posted(request.tenant, request.reader, params.as_of)
    found = billing_periods(request.tenant, posted)
    if request.wants_csv:
        return csv_file("focus-billing-periods.csv", focus_csv_text(found, FocusBillingPeriod))
    return FocusBillingPeriods(items=found)


@router.get("/contract-commitments", needs=Right.READ, whole=True, also=lambda its, _: configured(its), files=CSV)
def list_focus_contract_commitments(
    request: Facts, params: Annotated[FactsParameters, Query()]
) -> FocusContractCommitments | Response:
    """List the commitments of the contracts as the dataset *Contract Commitment* of FOCUS 1.4. Dates, `timezone` and
    page parameters are ignored."""
    tenant = request.tenant
    found = contract_commitments(tenant.contracts, standing_of(request, params), tenant.currency)
    if request.wants_csv:
        return csv_file("focus-contract-commitments.csv", focus_csv_text(found, FocusContractCommitment))
    return FocusContractCommitments(items=found)


@router.get(
    "/invoice-details",
    needs=Right.READ,
    whole=True,
    problems={404: "There is no such tenant or cost category."},
    also=lambda request, _: [request.tenant.rules.catalogue.hash, request.tenant.issuer],
    files=CSV,
)
def list_focus_invoice_details(
    request: Facts, params: Annotated[InvoiceDetailsQuery, Query()]
) -> FocusInvoiceDetails | Response:
    """List the lines of the statements as the dataset *Invoice Detail* of FOCUS 1.4: those of closed months as stored,
    those of reopened months as voided, and the present ones of the first open month. Dates, `timezone` and page
    parameters are ignored."""
    posted = request.context.posted(request.tenant, request.reader, params.as_of)
    by = params.by or groupings(request.tenant, posted)[0]
    month = None if params.period is None else AccountingPeriod.named(params.period)
    found = invoice_details(request.tenant, posted, by, month)
    if request.wants_csv:
        return csv_file("focus-invoice-details.csv", focus_csv_text(found, FocusInvoiceDetail))
    return FocusInvoiceDetails(items=found)


def _source(
    request: FileRequest | FactsRequest,
    reader: TenantReader,
    params: FocusRequest | FocusMetadataQuery,
    days: DayRange,
) -> FocusSource:
    """Return the source of the data of a tenant.

    Raises:
        InvalidRequest: the tenant does not have the columns, or the books do not have the months.
    """
    tenant = request.tenant
    if params.basis == "posted":
        reader = request.context.posted(tenant, reader, params.as_of)
        check_posted(reader, days.window)
    source = FocusSource.of(tenant, reader)
    try:
        source.columns(params.layout)
    except ValueError as mistake:
        raise InvalidRequest([InvalidParameter("columns", str(mistake))]) from None
    return source
