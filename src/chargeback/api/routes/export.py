"""The export of chargebacks as a file."""

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import Body
from pydantic import AfterValidator, ConfigDict, Field, WithJsonSchema, field_validator, model_validator
from starlette.responses import Response

from chargeback.access.caller import Right
from chargeback.api.parameters import (
    CATEGORY_PARAMETER,
    CATEGORY_PREFIX,
    EXCLUDED_FIELD,
    KEYED_FILTERS,
    NO_FILTERS,
    NOT_PREFIX,
    TAG_PARAMETER,
    AsOf,
    DateRangeParameters,
    nest_filter,
)
from chargeback.api.problems import InvalidParameter
from chargeback.api.routing import Routes
from chargeback.api.selecting import Basis, ChargebackColumns, selected
from chargeback.api.tenant_requests import (
    Export,
    RowsFile,
    category_versions,
    check_posted,
    file_answer,
    format_field,
    rows_file,
)
from chargeback.store.queries.category_parts import SHARE
from chargeback.store.queries.datasets import CHARGEBACKS
from chargeback.store.queries.export import ExportFormat
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.selection import Selection

_COLUMNS = (*CHARGEBACKS.export_columns, SHARE)


def _known_column(name: str) -> str:
    if name not in _COLUMNS and not re.fullmatch(CATEGORY_PARAMETER, name):
        raise ValueError(f"should be one of {', '.join(_COLUMNS)}, or category:<key>")
    return name


Column = Annotated[
    str,
    AfterValidator(_known_column),
    WithJsonSchema({"anyOf": [{"enum": list(_COLUMNS)}, {"type": "string", "pattern": CATEGORY_PARAMETER}]}),
]


def _as_in_bodies(schema: dict[str, Any]) -> None:
    """Describe filters as they are in bodies: one value or several, tags and exclusions by their names."""
    fields = schema["properties"]
    for name in (*KEYED_FILTERS.values(), EXCLUDED_FIELD):
        fields.pop(name)
    for field in fields.values():
        values = {"type": "array", "items": field.pop("items")}
        del field["type"], field["default"]
        field["anyOf"] = [values["items"], values, {"type": "null"}]
    texts = fields["product_type"]["anyOf"]
    keyed = {key: {"anyOf": texts} for key in (TAG_PARAMETER, CATEGORY_PARAMETER)}
    schema["patternProperties"] = keyed | {
        f"^{re.escape(NOT_PREFIX)}{name}$": {"anyOf": field["anyOf"]} for name, field in fields.items()
    }


class ExportFilters(ChargebackColumns):
    """The rows to export. A value may also be a list: a row must then have one of the values."""

    model_config = ConfigDict(json_schema_extra=_as_in_bodies)

    excluded: ChargebackColumns = ChargebackColumns()

    @model_validator(mode="before")
    @classmethod
    def _nested(cls, sent: object) -> object:
        """Convert the sent filters to the form of a query: every value in a list, tags and exclusions separated."""
        if not isinstance(sent, dict):
            return sent
        if reserved := sent.keys() & NO_FILTERS:
            raise ValueError(f"{min(reserved)} is not a filter; write tag:<key>, category:<key> or not.<column>")
        raw: dict[str, Any] = {}
        for name, value in sent.items():
            given = value if isinstance(value, list) else [] if value is None else [value]
            if name.startswith((*KEYED_FILTERS, NOT_PREFIX)):
                nest_filter(raw, name, given)
            else:
                raw[name] = given
        return raw


class ExportRequest(DateRangeParameters):
    """Parameters of the export; all fields have defaults."""

    format: ExportFormat = format_field()
    as_of: AsOf = None
    basis: Basis = "accrual"
    style: Literal["net", "ledger"] = Field(
        default="net",
        description="With `basis=posted`: `net` has the differences that corrections make, `ledger` both sides of "
        "each, the reversal and the replacement.",
    )
    columns: list[Column] = Field(
        default=list(CHARGEBACKS.default_export),
        min_length=1,
        description="Columns of the file, in this order, without duplicates. Available: "
        + ", ".join(f"`{column}`" for column in CHARGEBACKS.export_columns)
        + f"; `category:<key>` for the value of a cost category, and, with one of these, `{SHARE}`: a row that is "
        "split is then one row for each of its parts, with their amounts.",
        json_schema_extra={"uniqueItems": True},
    )
    filters: ExportFilters = Field(
        default=ExportFilters(),
        description="The rows to export. A filter is "
        + ", ".join(f"`{column}`" for column in CHARGEBACKS.filters)
        + ", `tag:<key>` or `category:<key>`, with a value or a list of values; `not.` in front of it excludes. "
        "Commas may separate values of tags and categories; in a value, `\\,` is a comma and `\\\\` a backslash.",
        json_schema_extra={"default": {}},
    )

    @classmethod
    def cross_checks(cls, raw: dict[str, Any], now: datetime) -> list[InvalidParameter]:
        """Check the parameters that depend on ``basis``."""
        errors = super().cross_checks(raw, now)
        is_posted = raw.get("basis") == "posted"
        if is_posted and SHARE in raw.get("columns", ()):
            errors.append(InvalidParameter("columns", f"should not have {SHARE} with basis=posted"))
        if is_posted and raw.get("timezone", "UTC") != "UTC":
            errors.append(InvalidParameter("timezone", "should be UTC with basis=posted: months are closed in UTC"))
        if not is_posted and "style" in raw:
            errors.append(InvalidParameter("style", "should be given with basis=posted only"))
        return errors

    @field_validator("columns")
    @classmethod
    def _distinct(cls, value: list[str]) -> list[str]:
        if len(set(value)) < len(value):
            raise ValueError("should not name a column twice")
        if SHARE in value and sum(name.startswith(CATEGORY_PREFIX) for name in value) != 1:
            raise ValueError(f"{SHARE} needs exactly one category:<key> with it")
        return value

    def selection(self, lookback_days: int) -> Selection:
        """Return the selection of rows."""
        return selected(CHARGEBACKS, self.window(lookback_days), self.filters, self.filters.excluded)


router = Routes(prefix="/tenants/{tenant_name}", tags=["Export"])

_FILE = file_answer("timestamp,identity_id,amount\r\n2026-01-31T00:00:00Z,sa-123abc,12.50\r\n")


@router.post("/export", response_class=Response, needs=Right.EXPORT, responses={200: _FILE})
def export_chargebacks(
    request: Export, params: Annotated[ExportRequest, Body(default_factory=ExportRequest)]
) -> RowsFile:
    """Stream chargeback rows as a file: CSV, Parquet or JSON lines.

    Parquet keeps the types: `amount` is a DECIMAL(38, 12), `timestamp` an instant in UTC, `tags` a map of texts and
    `metadata` a record. JSON lines have the values of the list, amounts as strings.

    In CSV, parse `amount` as a decimal, not as a binary floating-point number: it is exact to twelve places (pandas:
    `dtype={"amount": str}`, then `Decimal`; a spreadsheet rounds to 15 digits). Tags are written `key=value`, sorted by
    key and joined by `;`, with backslashes before `\\`, `;` and `=` in values. Text that a spreadsheet could take for
    a formula is defused with apostrophes: one at the beginning of a text that begins with `=`, `+`, `-`, `@`, `'`, tab
    or line break, and one after each `;`, tab or line break that `=`, `+`, `-`, `@`, `'` or `"` follows. To undo it,
    remove one apostrophe at the beginning and after each `;`, tab and line break. In `metadata`, which is JSON, `;` is
    written `\\u003b` instead. The other formats have texts as they are.

    With `basis=posted`, each row has `posted_period`, `charge_class` and `charge_period` at the end, corrections follow
    the rows of their month, and dates must be whole UTC months.

    If the connection closes before the end of the transfer, the export has failed, and the file is incomplete.
    """
    selection = params.selection(request.tenant.lookback_days)

    def _rows(reader: TenantReader) -> Iterator[memoryview]:
        file.headers.update(category_versions(reader))
        if params.basis == "posted":
            posted = request.context.posted(request.tenant, reader, params.as_of)
            check_posted(posted, selection.window)
            yield from posted.export(CHARGEBACKS, selection, params.columns, form=params.format, style=params.style)
            return
        yield from reader.export(CHARGEBACKS, selection, params.columns, form=params.format)

    file = rows_file("chargebacks", params.format, _rows)
    return file
