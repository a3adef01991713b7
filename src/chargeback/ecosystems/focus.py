"""The descriptive part of a tenant's FOCUS data: the issuer of the bill, and the services of its products.

An ecosystem has a profile, see :class:`.contract.FocusEcosystem`; a tenant's ``focus:`` in the configuration changes
it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.resources import files
from typing import Final, Literal, Self

import yaml
from pydantic import Field, model_validator

from chargeback.allocation.policies import best_match
from chargeback.model.focus import service_categories, subcategories
from chargeback.settings import Settings

#: ``focus.discount``: a line's discount was negotiated, or comes with a programme that is open to everybody.
NEGOTIATED: Final = "negotiated"
PROGRAMME: Final = "programme"
Discount = Literal["negotiated", "programme"]


class FocusService(Settings):
    """A service, with its place among the services that FOCUS distinguishes."""

    name: str = Field(min_length=1)
    category: str
    subcategory: str

    @model_validator(mode="after")
    def _has_its_place(self) -> Self:
        known = subcategories(self.category)
        if not known:
            raise ValueError(f"category should be one of {', '.join(service_categories())}")
        if self.subcategory not in known:
            raise ValueError(f"subcategory of {self.category} should be one of {', '.join(known)}")
        return self


#: The service of unknown products.
OTHER: Final = FocusService(name="Other", category="Other", subcategory="Other (Other)")


class BillInFocus(Settings):
    """``focus`` of an additional bill. ``services`` maps product categories, or patterns such as ``SUPPORT*``, to
    services."""

    issuer: str | None = Field(default=None, min_length=1)
    services: dict[str, FocusService] = Field(default={})

    @model_validator(mode="after")
    def _each_service_has_one_place(self) -> Self:
        _require_one_place(self.services)
        return self


class FocusSettings(BillInFocus):
    """``focus`` of a tenant."""

    billing_account_name: str | None = Field(default=None, min_length=1)
    discount: Discount = NEGOTIATED


class FocusProfile(FocusSettings):
    """How the bill of an ecosystem is written in FOCUS; the default knows nothing of the bill.

    Attributes:
        issuer: who issues the bill; by default the tenant itself, by its name.
        billing_account_name: the name of the account that is billed; by default that in the inventory, else the
            tenant's name.
        account_type: the type of the resource that is the billed account; by default the account is the tenant's id.
        credits: product types, or patterns, of promotional credits.
        recurring: product types, or patterns, that are charged for time and not for usage.
        bills: how each additional bill is written, by its name.
        units: the unit of each measure of usage, or of a pattern of measures, as FOCUS writes units.
    """

    account_type: str | None = None
    credits: tuple[str, ...] = ()
    recurring: tuple[str, ...] = ()
    units: dict[str, str] = Field(default={})
    bills: dict[str, FocusProfile] = Field(default={})

    def of_bill(self, name: str) -> FocusProfile:
        """Return how an additional bill is written; the empty name is the tenant's own bill. One that is no longer
        configured is known by its name only."""
        return self.bills.get(name, FocusProfile(issuer=name)) if name else self

    def service(self, product_category: str) -> FocusService:
        """Return the service of a product; an exact name wins over a pattern, a longer pattern over a shorter."""
        found = best_match(product_category, self.services)
        return OTHER if found is None else self.services[found]

    def is_credit(self, product_type: str) -> bool:
        """Return whether lines of a type are promotional credits."""
        return best_match(product_type, self.credits) is not None

    def is_recurring(self, product_type: str) -> bool:
        """Return whether lines of a type are charged for time."""
        return best_match(product_type, self.recurring) is not None

    def unit(self, measures: Iterable[str]) -> str | None:
        """Return the unit of a sum of measures; None if it is not known of all of them, or they have several."""
        patterns = {best_match(measure, self.units) for measure in measures}
        found = {None if pattern is None else self.units[pattern] for pattern in patterns}
        return found.pop() if len(found) == 1 else None

    def changed(self, settings: BillInFocus) -> FocusProfile:
        """Return the profile with the changes of a configuration.

        Raises:
            ValueError: a service would have two categories or subcategories.
        """
        given = {name: getattr(settings, name) for name in settings.model_fields_set}
        services = {**self.services, **settings.services}
        _require_one_place(services)
        return self.model_copy(update=given | {"services": services})


def _require_one_place(services: Mapping[str, FocusService]) -> None:
    places: dict[str, FocusService] = {}
    for service in services.values():
        if places.setdefault(service.name, service) != service:
            raise ValueError(f"the service {service.name!r} should have one category and one subcategory")


def load_profile(package: str) -> FocusProfile:
    """Return the profile in ``focus.yaml`` of a package.

    Raises:
        ValidationError: the file does not have the form of a profile.
    """
    document: Mapping[str, object] = yaml.safe_load((files(package) / "focus.yaml").read_text("utf-8"))
    return FocusProfile.model_validate(document)
