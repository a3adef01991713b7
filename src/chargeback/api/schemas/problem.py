"""The body of every answer that is not a success."""

from pydantic import BaseModel, Field


class InvalidPart(BaseModel):
    """One thing wrong with a request."""

    parameter: str = Field(description="The query parameter, or the path in the body.", examples=["page_size"])
    message: str = Field(description="What to change.", examples=["Input should be less than or equal to 1000"])


class Problem(BaseModel):
    """A problem (RFC 9457), as `application/problem+json`."""

    type: str = Field(
        description="A stable identifier of the problem type.", examples=["urn:chargeback:invalid-request"]
    )
    title: str = Field(description="The problem type as text.", examples=["Invalid request"])
    status: int = Field(description="The HTTP status.", examples=[400])
    detail: str = Field(
        description="One sentence that explains the problem and how to solve it.",
        examples=["page_size: should be at most 1000"],
    )
    errors: list[InvalidPart] | None = Field(
        default=None, description="All mistakes in an invalid request; absent for other problems."
    )
