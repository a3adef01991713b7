"""Saved views."""

from typing import Annotated

from pydantic import Field, StringConstraints

from chargeback.api.parameters import StrictModel, Text
from chargeback.api.schemas.common import Instant, ResponseModel
from chargeback.api.schemas.tags import Author
from chargeback.store.control.views import ViewWrite

#: So many views a caller sees at most.
MOST_VIEWS = 1000


PageName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]{0,63}$")]
QueryText = Annotated[
    str,
    StringConstraints(max_length=8000, pattern=r"^[!-~]*$"),
    Field(
        description="The page's query, without the question mark, as an address has it: anything but printable ASCII "
        "is percent-encoded.",
        examples=["period=30d&tag:team=payments"],
    ),
]


class ViewBody(StrictModel):
    """What a view shall be."""

    name: Text = Field(
        description="What the view is called; not as another one that the caller sees.", examples=["Payments"]
    )
    page: PageName = Field(description="The page that it shows.", examples=["costs"])
    query: QueryText = ""

    def write(self) -> ViewWrite:
        """The view as the store knows it."""
        return ViewWrite(self.name, self.page, self.query)


class NewView(ViewBody):
    """A view to save."""

    created_by: Author = "api"


class ViewItem(ResponseModel):
    """A saved view."""

    id: str = Field(examples=["3"])
    name: str = Field(examples=["Payments"])
    page: str = Field(examples=["costs"])
    query: str = Field(examples=["period=30d&tag:team=payments"])
    created_by: str = Field(examples=["alice"])
    created_at: Instant


class ViewList(ResponseModel):
    """All views of a tenant."""

    items: list[ViewItem]
