"""Terms of the FinOps Open Cost and Usage Specification (FOCUS): its versions, and the services it distinguishes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

V1_2: Final = "1.2"
V1_4: Final = "1.4"
#: The supported versions, the default first.
VERSIONS: Final = (V1_2, V1_4)

#: Among whom the billing lines are divided; each split is a dataset of its own with the whole bill.
IDENTITIES: Final = "identities"
TOPICS: Final = "topics"
UNSPLIT: Final = "none"

#: The subcategories of each service category (columns ``ServiceCategory`` and ``ServiceSubcategory`` of FOCUS), besides
#: ``Other (<category>)``, which each of them has.
_SUBCATEGORIES: Final[Mapping[str, tuple[str, ...]]] = {
    "AI and Machine Learning": (
        "AI Platforms",
        "Bots",
        "Generative AI",
        "Machine Learning",
        "Natural Language Processing",
    ),
    "Analytics": ("Analytics Platforms", "Business Intelligence", "Data Processing", "Search", "Streaming Analytics"),
    "Business Applications": ("Productivity and Collaboration",),
    "Compute": ("Containers", "End User Computing", "Quantum Compute", "Serverless Compute", "Virtual Machines"),
    "Databases": (
        "Caching",
        "Data Warehouses",
        "Ledger Databases",
        "NoSQL Databases",
        "Relational Databases",
        "Time Series Databases",
    ),
    "Developer Tools": (
        "Developer Platforms",
        "Continuous Integration and Deployment",
        "Development Environments",
        "Source Code Management",
        "Quality Assurance",
    ),
    "Identity": ("Identity and Access Management",),
    "Integration": ("API Management", "Messaging", "Workflow Orchestration"),
    "Internet of Things": ("IoT Analytics", "IoT Platforms"),
    "Management and Governance": (
        "Architecture",
        "Compliance",
        "Cost Management",
        "Data Governance",
        "Disaster Recovery",
        "Endpoint Management",
        "Observability",
        "Support",
    ),
    "Media": ("Content Creation", "Gaming", "Media Streaming", "Mixed Reality"),
    "Migration": ("Data Migration", "Resource Migration"),
    "Mobile": (),
    "Multicloud": ("Multicloud Integration",),
    "Networking": (
        "Application Networking",
        "Content Delivery",
        "Network Connectivity",
        "Network Infrastructure",
        "Network Routing",
        "Network Security",
    ),
    "Security": ("Secret Management", "Security Posture Management", "Threat Detection and Response"),
    "Storage": ("Backup Storage", "Block Storage", "File Storage", "Object Storage", "Storage Platforms"),
    "Web": ("Application Platforms",),
    "Other": (),
}


def subcategories(category: str) -> tuple[str, ...]:
    """Return the subcategories of a service category; none if it is not one.

    >>> subcategories("Integration")
    ('API Management', 'Messaging', 'Workflow Orchestration', 'Other (Integration)')
    """
    return (*_SUBCATEGORIES[category], f"Other ({category})") if category in _SUBCATEGORIES else ()


def service_categories() -> tuple[str, ...]:
    """Return all service categories."""
    return tuple(_SUBCATEGORIES)


#: Units of time as they come in bills, and as FOCUS writes them.
_TIMES: Final = {
    name: f"{name.capitalize()}s" for name in ("year", "month", "day", "hour", "minute", "second", "millisecond")
}
#: The unit of a quantity without one.
UNITS: Final = "Units"


def focus_unit(unit: str | None) -> str:
    """Return a unit of a bill as FOCUS writes it: words with a capital, units of time in the plural.

    >>> focus_unit("GB-hour"), focus_unit("broker-hour"), focus_unit("Day"), focus_unit("GiB"), focus_unit(None)
    ('GB-Hours', 'Broker-Hours', 'Days', 'GiB', 'Units')
    """
    if not unit:
        return UNITS
    *before, last = (part.capitalize() if part.islower() and len(part) > 1 else part for part in unit.split("-"))
    return "-".join([*before, _TIMES.get(last.lower().removesuffix("s"), last)])
