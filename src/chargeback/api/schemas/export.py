"""The CSV export."""

import re
from typing import TYPE_CHECKING, Any, Literal

from pydantic import ConfigDict, Field, field_validator, model_validator

from chargeback.api.parameters import (
    EXCLUDED_FIELD,
    NO_FILTERS,
    NOT_PREFIX,
    TAG_PARAMETER,
    TAG_PREFIX,
    TAGS_FIELD,
    AsOf,
    DateRangeParameters,
    nest_filter,
)
from chargeback.api.schemas.chargebacks import ChargebackColumns
from chargeback.api.schemas.datasets import selected
from chargeback.store.queries.datasets import CHARGEBACKS
from chargeback.store.queries.selection import Selection

if TYPE_CHECKING:
    Column = str
else:
    Column = Literal[tuple(CHARGEBACKS.export_columns)]


def _as_in_bodies(schema: dict[str, Any]) -> None:
    """Describe filters as bodies may have them: one value or several, tags and exclusions by their names."""
    fields = schema["properties"]
    for name in (TAGS_FIELD, EXCLUDED_FIELD):
        fields.pop(name)
    for field in fields.values():
        values = {"type": "array", "items": field.pop("items")}
        del field["type"], field["default"]
        field["anyOf"] = [values["items"], values, {"type": "null"}]
    texts = fields["product_type"]["anyOf"]
    schema["patternProperties"] = {TAG_PARAMETER: {"anyOf": texts}} | {
        f"^{re.escape(NOT_PREFIX)}{name}$": {"anyOf": field["anyOf"]} for name, field in fields.items()
    }


class ExportFilters(ChargebackColumns):
    """Which rows are exported. A value may also be a list of values, one of which a row must have."""

    model_config = ConfigDict(json_schema_extra=_as_in_bodies)

    excluded: ChargebackColumns = ChargebackColumns()

    @model_validator(mode="before")
    @classmethod
    def _nested(cls, sent: object) -> object:
        """Bring what was sent to the form of a query: every value in a list, tags and exclusions by themselves."""
        if not isinstance(sent, dict):
            return sent
        if reserved := sent.keys() & NO_FILTERS:
            raise ValueError(f"{min(reserved)} is not a filter; write tag:<key>, or not.<column>")
        raw: dict[str, Any] = {}
        for name, value in sent.items():
            given = value if isinstance(value, list) else [] if value is None else [value]
            if name.startswith((TAG_PREFIX, NOT_PREFIX)):
                nest_filter(raw, name, given)
            else:
                raw[name] = given
        return raw


class ExportRequest(DateRangeParameters):
    """What is exported; all fields have defaults."""

    as_of: AsOf = None
    columns: list[Column] = Field(
        default=list(CHARGEBACKS.default_export),
        min_length=1,
        description="Columns of the file, in this order, without duplicates. Available: "
        + ", ".join(f"`{column}`" for column in CHARGEBACKS.export_columns)
        + ".",
        json_schema_extra={"uniqueItems": True},
    )
    filters: ExportFilters = Field(
        default=ExportFilters(),
        description="Only these rows. A filter is "
        + ", ".join(f"`{column}`" for column in CHARGEBACKS.filters)
        + " or `tag:<key>`, with a value or a list of values; `not.` in front of it excludes.",
        json_schema_extra={"default": {}},
    )

    @field_validator("columns")
    @classmethod
    def _distinct(cls, value: list[str]) -> list[str]:
        if len(set(value)) < len(value):
            raise ValueError("should not name a column twice")
        return value

    def selection(self, lookback_days: int) -> Selection:
        """Return the selection of rows."""
        return selected(CHARGEBACKS, self.window(lookback_days), self.filters, self.filters.excluded)
