"""The body of every answer that is not a success."""

from pydantic import BaseModel, Field


class InvalidPart(BaseModel):
    """One thing wrong with a request."""

    parameter: str = Field(description="Where: a query parameter, or a path in the body.", examples=["page_size"])
    message: str = Field(description="What to change.", examples=["Input should be less than or equal to 1000"])


class Problem(BaseModel):
    """A problem (RFC 9457), as `application/problem+json`."""

    type: str = Field(description="A stable name of the kind of problem.", examples=["urn:chargeback:invalid-request"])
    title: str = Field(description="The kind of problem, in words.", examples=["Invalid request"])
    status: int = Field(description="The HTTP status.", examples=[400])
    detail: str = Field(description="One sentence a person can act on.", examples=["page_size: should be at most 1000"])
    errors: list[InvalidPart] | None = Field(
        default=None, description="Everything wrong with an invalid request; absent for other problems."
    )
