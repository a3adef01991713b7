"""Cost categories."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, Field, StringConstraints

from chargeback.api.parameters import CommonParameters, StrictModel
from chargeback.api.problems import InvalidParameter, InvalidRequest
from chargeback.api.schemas.common import Instant, ResponseModel
from chargeback.category_sources.csv_file import decoded
from chargeback.errors import ConfigurationError


def _plain(text: str) -> str:
    if "\x00" in text:
        raise ValueError("must not contain the character NUL")
    return text


Reason = Annotated[
    str | None,
    StringConstraints(max_length=2000),
    AfterValidator(lambda text: text and _plain(text)),
    Field(
        description="Why; kept with the version.", examples=["CHG-42"], json_schema_extra={"pattern": r"^[^\u0000]*$"}
    ),
]

_EXAMPLE: dict[str, Any] = {
    "default": "UNASSIGNED",
    "values": {"payments": {"name": "Payments", "parent": "retail"}, "retail": {"name": "Retail"}},
    "rules": [
        {"id": "reorg-42", "match": {"identity": ["sa-abc123"]}, "assign": "payments", "valid_from": "2026-03-01"},
        {"match": {"tag": {"key": "team"}}, "assign": {"from_tag": "team"}},
    ],
}


class CategoryBody(StrictModel):
    """What a cost category shall be."""

    document: dict[str, Any] = Field(
        description="The category: `default`, `values`, `rules` and `share`, as below its key in a YAML file.",
        examples=[_EXAMPLE],
    )
    reason: Reason = None


@contextmanager
def reported_csv() -> Iterator[None]:
    """Convert mistakes in a CSV file to an invalid request."""
    try:
        yield
    except ConfigurationError as error:
        raise InvalidRequest([InvalidParameter("csv", str(problem)) for problem in error.problems]) from None


class RulesFile(StrictModel):
    """A CSV file of rules."""

    takes_csv: ClassVar[bool] = True

    csv: Annotated[str, StringConstraints(min_length=1)] = Field(
        description="The file: `entity_type,entity_id,value,percent,valid_from,valid_to`, one line for each entity, or "
        "one for each part of a split.",
        examples=[
            "entity_type,entity_id,value,percent,valid_from,valid_to\nidentity,sa-abc123,payments,,2026-03-01,\n"
        ],
    )
    reason: Reason = None

    @classmethod
    def from_csv(cls, content: bytes) -> "RulesFile":
        """Return the file that was sent as it is; an empty one has a mistake, too, when it is read."""
        with reported_csv():
            text = decoded(content)
        return cls.model_construct(csv=text, reason=None)


class RemovalQuery(StrictModel):
    """Parameters of a removal."""

    reason: Reason = None


class VersionQuery(CommonParameters):
    """Parameters of one cost category."""

    version: int | None = Field(
        default=None, ge=1, le=2**31 - 1, description="This version. Default: the present one.", examples=[1]
    )


class CategoryVersionInfo(ResponseModel):
    """Who wrote a version, when, and why."""

    version: int = Field(description="From 1, one more with each change.", examples=[3])
    who: str = Field(
        description="`api` for a caller of the API, `command line` for a user of the command line.", examples=["api"]
    )
    at: Instant
    reason: str | None = Field(examples=["CHG-42"])


class CategoryListItem(CategoryVersionInfo):
    """A cost category, without its document."""

    key: str = Field(examples=["cost_center"])
    rules: int = Field(description="How many rules it has.")
    values: int = Field(description="How many values its register has; 0 if it has none.")


class CategoryList(ResponseModel):
    """All cost categories of a tenant."""

    items: list[CategoryListItem]


class CategoryHistoryItem(CategoryVersionInfo):
    """One version of a cost category, without its document."""

    removed: bool = Field(description="Whether this version removed the category.")
    rules: int
    values: int


class CategoryWarning(ResponseModel):
    """What is allowed but probably not meant."""

    path: str = Field(description="The place in the document.", examples=["rules[1].assign"])
    message: str = Field(examples=["the values payments and Payments differ only in case"])


class CategoryItem(CategoryVersionInfo):
    """A cost category."""

    key: str = Field(examples=["cost_center"])
    document: dict[str, Any] = Field(description="In canonical form.")
    warnings: list[CategoryWarning]
