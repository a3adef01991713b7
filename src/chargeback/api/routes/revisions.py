"""Revisions of days, which days were restated, and what changed between two moments."""

from datetime import date, datetime
from typing import Annotated, Any, ClassVar, Literal

from fastapi import Path, Query
from pydantic import Field

from chargeback.access.caller import Right
from chargeback.api.parameters import CommonParameters, Day, When, instant_if_valid
from chargeback.api.problems import InvalidParameter
from chargeback.api.routing import Routes
from chargeback.api.selecting import ChargebackFilters, GroupedQuery, UsualPeriodQuery, groups_of
from chargeback.api.tenant_requests import Facts
from chargeback.model.days import DayRange
from chargeback.reports.answers import Exact, Instant, ResponseModel
from chargeback.reports.restatements import Difference, Restatements, causes_between, restated_days, restatement
from chargeback.store.control.catalogue import files_of_day
from chargeback.store.control.day_revisions import CAUSES, read_day_revisions
from chargeback.store.control.days import DayDataset
from chargeback.store.queries.as_of import REVISED
from chargeback.store.queries.datasets import CHARGEBACKS, Dataset
from chargeback.store.queries.reader import version_reader
from chargeback.store.queries.version import read_version

MOST_CHANGES = 1000

RevisedName = Literal["chargebacks", "topics"]


class RevisionItem(ResponseModel):
    """A revision of the content of a day."""

    dataset: RevisedName = Field(description="Whether it is about charges or about the attribution to topics.")
    revision: int = Field(description="1 for the first content.", examples=[1])
    calculated_at: Instant = Field(description="The instant from which the day has this content.")
    cause: str = Field(
        description=f"The cause: {', '.join(f'`{cause}`' for cause in CAUSES)}.", examples=["bill_changed"]
    )
    run_id: str | None = Field(description="The run that calculated it; null if it is not known.", examples=["17"])
    rows: int
    total: Exact | None = Field(description="The sum of the amounts; null if it is not known.")
    moved: Exact | None = Field(
        description="Half of the sum of the changes of all identities (or topics) since the previous revision."
    )
    billing_fingerprint: str | None = Field(description="Fingerprint of the bill from which it was calculated.")
    policies_hash: str | None = Field(description="One hash for the policies of all product types of the bill.")
    is_kept: bool = Field(description="Whether its rows can still be shown with `as_of`.")


class DayRevisions(ResponseModel):
    """The revisions of one day, the oldest first."""

    date: date
    items: list[RevisionItem]


class DifferenceQuery(ChargebackFilters, GroupedQuery):
    """Parameters of the comparison of two moments: ``from_as_of``, and ``as_of``, by default the present."""

    dataset: ClassVar[Dataset] = CHARGEBACKS

    group_by: list[str] = groups_of(CHARGEBACKS, "identity_id")
    from_as_of: When = Field(description="The earlier moment.", examples=["2026-01-31T12:00:00Z"])
    limit: int = Field(default=100, ge=1, le=MOST_CHANGES, description="How many changes, the largest first.")

    @classmethod
    def cross_checks(cls, raw: dict[str, Any], now: datetime) -> list[InvalidParameter]:
        """Check that the moments are in order."""
        problems = super().cross_checks(raw, now)
        first, second = instant_if_valid(raw.get("from_as_of")), instant_if_valid(raw.get("as_of"))
        if first is not None and second is not None and first > second:
            problems.append(InvalidParameter("from_as_of", "should not be after as_of"))
        return problems


router = Routes(prefix="/tenants/{tenant_name}", tags=["Revisions"])


@router.get("/days/{date}/revisions", needs=Right.READ, whole=True)
def list_revisions(
    request: Facts,
    day: Annotated[Day, Path(alias="date", description="A UTC day.")],
    _params: Annotated[CommonParameters, Query()],
) -> DayRevisions:
    """List the revisions of a day, each with its time, its cause and the moved amount; the oldest first."""
    with request.tenant.store.control.read() as connection:
        recorded = {name: read_day_revisions(connection, name, DayRange.of_day(day)) for name in REVISED}
        named = files_of_day(connection, day)
    items = []
    for dataset in REVISED.values():
        of_table = [each for each in named if each.table == dataset.table]
        for revision in recorded[dataset.name]:
            in_force = [each for each in of_table if each.is_in_force(revision.calculated_at)]
            items.append(
                RevisionItem(
                    dataset=revision.dataset,
                    revision=revision.revision,
                    calculated_at=revision.calculated_at,
                    cause=revision.cause,
                    run_id=None if revision.run_id is None else str(revision.run_id),
                    rows=revision.rows,
                    total=revision.total,
                    moved=revision.moved,
                    billing_fingerprint=revision.billing_fingerprint,
                    policies_hash=revision.policies_hash,
                    is_kept=all(each.gone_at is None for each in in_force),
                )
            )
    return DayRevisions(date=day, items=items)


@router.get("/restatements", needs=Right.READ, whole=True)
def list_restatements(request: Facts, params: Annotated[UsualPeriodQuery, Query()]) -> Restatements:
    """List the UTC days of a period whose costs were calculated again with another result, ascending: what a day had
    first, what it has now, when and why. Rows that were only stored again, and days without rows since the end of their
    retention, are left out. With `as_of`, what was known at that instant."""
    days = params.chosen_period(request.tenant.lookback_days, request.version.control.last_calculated).day_range
    with request.reading() as connection:
        recorded = read_day_revisions(connection, DayDataset.CHARGEBACKS, days, params.as_of)
    return Restatements.cut(restated_days(recorded), params.paging, currency=request.tenant.currency)


@router.get("/chargebacks/diff", needs=Right.READ, keep=True)
def compare_moments(request: Facts, params: Annotated[DifferenceQuery, Query()]) -> Difference:
    """Compare the costs as of `from_as_of` with those as of `as_of`, by default now; the largest changes first, each
    with its causes. Page parameters are ignored."""
    tenant, context = request.tenant, request.context
    reader = request.reader
    version = request.version
    earlier = read_version(request.whole_store, context.token, request.executor.lookups, params.from_as_of)
    before = version_reader(reader.cursor, request.whole_store, earlier, request.executor.lookups, reader.scope)
    with tenant.store.control.read() as connection:
        causes = causes_between(connection, params.from_as_of, params.as_of)
    selection = params.selection(tenant.lookback_days, version.control.last_calculated)
    return restatement(before, reader, selection, params.group_by, causes, currency=tenant.currency, limit=params.limit)
