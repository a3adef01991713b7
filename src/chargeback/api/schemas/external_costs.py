"""Costs from elsewhere beside those stored here."""

from datetime import date
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, StringConstraints

from chargeback.api.parameters import AsOf, Day, StrictModel
from chargeback.api.schemas.common import ResponseModel, Sum
from chargeback.errors import ConfigurationError
from chargeback.service.cost_files import MOST_PLACES, CostMapping, parse_mapping

MOST_COMPARED = 10_000
_MAX_MAPPING_LENGTH = 20_000

#: An exact decimal as text, with all decimal places that the file has.
LongDecimal = Annotated[str, Field(pattern=rf"^-?\d+\.\d{{2,{MOST_PLACES}}}$", examples=["1234.56"])]


def _parsed(value: object) -> object:
    """Return the mapping that was sent as YAML text; leave anything else as it is."""
    if not isinstance(value, str):
        return value
    if len(value) > _MAX_MAPPING_LENGTH:
        raise ValueError(f"should have at most {_MAX_MAPPING_LENGTH:,} characters")
    try:
        return parse_mapping(value)
    except ConfigurationError as error:
        raise ValueError(f"should be YAML of a mapping: {error}") from None


class ExternalCosts(StrictModel):
    """A file of costs and how to read it."""

    csv: Annotated[str, StringConstraints(min_length=1)] = Field(
        description="The file: CSV whose first line has the names of the columns.",
        examples=["date,resource,type,amount\n2026-01-31,lkc-abc123,KAFKA_BASE,12.50\n"],
    )
    mapping: Annotated[CostMapping, BeforeValidator(_parsed, json_schema_input_type=CostMapping | str)] = Field(
        description="Which columns mean what, as an object or as YAML text of one.",
        examples=[{"columns": {"date": "date", "entity": "resource", "product_type": "type", "amount": "amount"}}],
    )
    start_date: Day | None = Field(
        default=None, description="First UTC day to compare. Default: the first one in the file."
    )
    end_date: Day | None = Field(
        default=None, description="Last UTC day to compare, inclusive. Default: the last one in the file."
    )
    as_of: AsOf = None
    limit: int = Field(
        default=1000, ge=1, le=MOST_COMPARED, description="How many entries, the largest difference first."
    )


class ComparedAmounts(ResponseModel):
    """A sum on both sides."""

    theirs: LongDecimal
    ours: Sum
    delta: LongDecimal = Field(description="`ours` minus `theirs`, exactly.")


class ComparedItem(ResponseModel):
    """What both sides say of one entity and product type."""

    entity: str | None = Field(description="Null if the mapping has no column for it.", examples=["lkc-abc123"])
    name: str | None = Field(description="Its display name.", examples=["prod"])
    product_type: str | None = Field(
        description="Null if the mapping has no column for it.", examples=["KAFKA_NUM_CKUS"]
    )
    theirs: LongDecimal | None = Field(description="Null if the file has nothing of it.")
    ours: Sum | None = Field(description="Null if nothing of it is stored here.")
    delta: LongDecimal = Field(description="`ours` minus `theirs`, exactly.")


class ComparedRest(ComparedAmounts):
    """The entries that are not listed, together."""

    count: int


class OneSided(ResponseModel):
    """What only one side has, listed or not."""

    count: int
    amount: LongDecimal


class ExternalReconciliation(ResponseModel):
    """Costs from elsewhere beside those stored here, the largest difference first."""

    start_date: date
    end_date: date
    currency: str = Field(examples=["USD"])
    compared_with: Literal["billing", "chargebacks"]
    lines: int = Field(description="Lines of the file in these days.")
    outside: int = Field(description="Lines of the file on other days, which are left out.")
    total: ComparedAmounts
    only_theirs: OneSided
    only_ours: OneSided
    items: list[ComparedItem]
    other: ComparedRest | None = Field(description="The entries beyond `limit`, together.")
