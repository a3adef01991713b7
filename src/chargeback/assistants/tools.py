"""The tools of an assistant, all of which only read, and those that list what can be queried."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

from pydantic import ValidationError

from chargeback.assistants.answers import KnownTenant, dates, present, reconciled_in, sums, within_limit
from chargeback.assistants.api_client import ApiClient, ToolError
from chargeback.assistants.arguments import (
    AnomaliesArguments,
    Arguments,
    BudgetsArguments,
    CompareArguments,
    CostsArguments,
    DescribeArguments,
    ExplainArguments,
    FindingsArguments,
    ForecastArguments,
    PeriodArguments,
    SearchArguments,
    StatementArguments,
)
from chargeback.assistants.costs import compare_periods, explain_charge, query_costs
from chargeback.assistants.outlook import budget_status, forecast, get_statement, list_anomalies, list_findings

_MOST_TENANTS: Final = 50
_MOST_PRODUCTS: Final = 25

INSTRUCTIONS: Final = """\
Costs of Apache Kafka, split among those who caused them. Call describe first: it names the tenants, and what costs can
be grouped by. Amounts are exact decimal strings: quote or round them, but do not add them up where an answer has a
total. data_through is the last calculated day; later days are missing, not free. reconciled says whether the tenant was
charged what was billed: equal, differs, pending (some days are not calculated), none (no bill), or null if you see only
a part of the bill. Give users the link: a person can see the same there."""


async def describe(api: ApiClient, arguments: DescribeArguments) -> dict[str, Any]:
    """Return the tenants of the caller; of one, or of the only one, also its categories and products."""
    if arguments.tenant is not None:
        return await _one(api, arguments.tenant)
    found: list[dict[str, Any]] = (await api.get(None, "tenants")).body
    if len(found) == 1:
        return await _one(api, found[0]["tenant_name"])
    return within_limit(
        _MOST_TENANTS,
        lambda count: {
            "tenants": [
                {
                    "tenant": each["tenant_name"],
                    "ecosystem": each["ecosystem"],
                    "data_through": each["last_calculated_date"],
                    "link": api.link(each["tenant_name"], "costs"),
                }
                for each in found[:count]
            ],
            "more_tenants": len(found) - min(count, len(found)),
            "next": "Call describe with one of these tenants.",
        },
    )


async def _one(api: ApiClient, name: str) -> dict[str, Any]:
    tenant = await KnownTenant.of(api, name)
    categories = (await api.get(name, "cost-categories")).body["items"]
    products: dict[str, Any] = {"buckets": []}
    reconciled = None
    if tenant.data_through is not None:
        days = dates(tenant.period(PeriodArguments(tenant=name)))
        products, reconciled = await sums(api, name, {"group_by": ["product_category", "product_type"], **days})
    overview = tenant.overview
    return within_limit(
        _MOST_PRODUCTS,
        lambda count: {
            **tenant.heading(reconciled, api.link(name, "costs")),
            "ecosystem": overview["ecosystem"],
            "first_date": overview["first_date"],
            "other_currencies": overview["currencies"],
            "topics": overview["features"]["topics"],
            "categories": [f"category:{each['key']}" for each in categories],
            "tags": [f"tag:{each['key']}" for each in overview["tag_keys"][:count]],
            "products": [each["dimensions"] for each in products["buckets"][:count]],
        },
    )


async def search_entities(api: ApiClient, arguments: SearchArguments) -> dict[str, Any]:
    """Return identities, resources, topics, and values of tags and cost categories that match a text."""
    tenant = await KnownTenant.of(api, arguments.tenant)
    found = await api.get(tenant.name, "search", {"q": arguments.query, "limit": arguments.limit})
    reconciled = None
    if tenant.data_through is not None:
        reconciled = await reconciled_in(api, tenant.name, tenant.period(PeriodArguments(tenant=tenant.name)))
    items = found.body["items"]
    return within_limit(
        len(items),
        lambda count: {
            **tenant.heading(reconciled, api.link(tenant.name, "tags", {"find": arguments.query})),
            "items": [present(each) for each in items[:count]],
            "amounts_are_of": f"{found.body['start_date']} to {found.body['end_date']}",
        },
    )


@dataclass(frozen=True)
class Tool:
    """A tool: its description for assistants, the model of its arguments, and its function."""

    name: str
    title: str
    description: str
    arguments: type[Arguments]
    answer: Callable[[ApiClient, Any], Awaitable[dict[str, Any]]]

    async def call(self, api: ApiClient, sent: dict[str, Any]) -> dict[str, Any]:
        """Return the result for the arguments.

        Raises:
            ToolError: they are not valid, or there is no result.
        """
        try:
            arguments = self.arguments.model_validate(sent)
        except ValidationError as error:
            raise ToolError("; ".join(map(_mistake, error.errors(include_url=False)))) from None
        return await self.answer(api, arguments)


def _mistake(error: Any) -> str:
    where = ".".join(str(part) for part in error["loc"])
    message = str(error["msg"]).removeprefix("Value error, ")
    return f"{where}: {message}" if where else message


TOOLS: Final = {
    tool.name: tool
    for tool in (
        Tool(
            "describe",
            "What there is",
            "List the tenants, or describe one: how far its data reaches, its currency, cost categories, tags and "
            "products. Call it first.",
            DescribeArguments,
            describe,
        ),
        Tool(
            "search_entities",
            "Find by name",
            "Find identities (service accounts, users), resources, topics, and values of tags and cost categories by "
            "a part of their id or name, with what they cost in the last 30 calculated days.",
            SearchArguments,
            search_entities,
        ),
        Tool(
            "query_costs",
            "Costs of a period",
            "Sum the costs of a period by up to three columns, the largest first; or by one column over time. `other` "
            "is everything that is not in `rows`, so that `rows` and `other` add up to `total`.",
            CostsArguments,
            query_costs,
        ),
        Tool(
            "compare_periods",
            "What changed",
            "Compare a period with an earlier one: the largest changes first, each split into effects (such as "
            "quantity, price and share) that add up to it, and in a sentence.",
            CompareArguments,
            compare_periods,
        ),
        Tool(
            "explain_charge",
            "Why this amount",
            "Explain why an identity is charged an amount on a day: the billing line, how it was split, by what usage, "
            "and whether a new calculation gives the same.",
            ExplainArguments,
            explain_charge,
        ),
        Tool(
            "list_findings",
            "What is not used",
            "List what costs something and is not used: idle topics, resources and identities, the most expensive "
            "first.",
            FindingsArguments,
            list_findings,
        ),
        Tool(
            "anomalies",
            "What stands out",
            "List the days on which the costs of an identity for a product group stand out against earlier weeks, the "
            "largest impact first, each as a story with a sentence. The numbers are estimates at constant prices.",
            AnomaliesArguments,
            list_anomalies,
        ),
        Tool(
            "budget_status",
            "How far budgets are",
            "Return what each budget allows for a month, what is charged to date, what the same days of the budget "
            "allow, what is expected, and which thresholds are reached.",
            BudgetsArguments,
            budget_status,
        ),
        Tool(
            "forecast",
            "What the month will cost",
            "Return what the month of the last calculated day is expected to cost at its end, with an interval for "
            "eight of ten cases; an estimate, and null where there are too few days.",
            ForecastArguments,
            forecast,
        ),
        Tool(
            "get_statement",
            "Statement of a month",
            "Return what finance books for one cost category value, tag value or identity in a month; without `value`, "
            "the list of all statements of the month.",
            StatementArguments,
            get_statement,
        ),
    )
}
