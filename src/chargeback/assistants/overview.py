"""What there is: tenants, their categories and products, and entities by their names."""

from __future__ import annotations

from typing import Any, Final

from chargeback.assistants.answers import KnownTenant, dates, reconciled_in, sums, within_limit
from chargeback.assistants.api_client import ApiClient
from chargeback.assistants.arguments import DescribeArguments, PeriodArguments, SearchArguments

_MOST_TENANTS: Final = 50
_MOST_PRODUCTS: Final = 25


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
            "items": [_without_nothing(each) for each in items[:count]],
            "amounts_are_of": f"{found.body['start_date']} to {found.body['end_date']}",
        },
    )


def _without_nothing(item: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in item.items() if value is not None}
