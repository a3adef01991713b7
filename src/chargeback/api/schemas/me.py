"""Who sends a request, and what that caller may see."""

from typing import Literal

from pydantic import Field

from chargeback.api.schemas.common import ResponseModel

CallerKind = Literal["anonymous", "proxy", "jwt", "token"]
RightName = Literal["read", "export", "tag", "run", "close", "admin"]


class TenantRights(ResponseModel):
    """What the caller may do with one tenant."""

    tenant_name: str = Field(examples=["acme"])
    rights: list[RightName] = Field(description="`admin` includes all others.", examples=[["read", "export"]])
    scope: dict[str, list[str]] | None = Field(
        description="The rows that the caller sees: those that have one of the values of each condition, which are "
        "filters of costs. Null means all rows.",
        examples=[{"category:cost_center": ["payments"]}],
    )
    role: str = Field(
        description="The role (its place in `access.roles`) or the token that gave the rights; empty where nobody is "
        "told apart.",
        examples=["roles[2]"],
    )


class Me(ResponseModel):
    """The caller."""

    user: str = Field(
        description="The name under which the audit log has the caller's changes.", examples=["ann@example.com"]
    )
    kind: CallerKind = Field(
        description="What vouches for the name: the proxy, the issuer of a JWT, a token of the service; `anonymous` "
        "where nobody is told apart."
    )
    groups: list[str] = Field(examples=[["team-payments"]])
    tenants: list[TenantRights] = Field(description="The tenants that the caller may read, by name.")
