"""Parameters that select rows of a dataset: periods, filters, and how sums are grouped."""

import re
from collections.abc import Collection, Iterable
from dataclasses import replace
from datetime import date, datetime
from typing import Annotated, Any, ClassVar, Literal, Self, TypeAlias, cast

from pydantic import AfterValidator, Field, StringConstraints, field_validator

from chargeback.api.parameters import (
    CATEGORY_COLUMN,
    EXCLUDED_FIELD,
    TAG_PARAMETER,
    CategoryKey,
    CommonParameters,
    FactsParameters,
    Id,
    OptionalText,
    StrictModel,
    TagKey,
    Text,
    is_tag_key,
)
from chargeback.api.problems import InvalidParameter
from chargeback.model.chargeback import CostType
from chargeback.model.days import InstantRange, instants
from chargeback.model.texts import separated_values
from chargeback.reports.periods import COMPARISON, PERIOD, CalendarPeriod, Comparison, compared_period, named_period
from chargeback.store.queries.costs import COST_COLUMNS
from chargeback.store.queries.datasets import CHARGEBACKS, Dataset
from chargeback.store.queries.keys import TAG_PREFIX
from chargeback.store.queries.selection import CategoryFilter, ColumnFilter, Selection, TagFilter

TagFilters: TypeAlias = tuple[TagFilter, ...]
PeriodName = Annotated[str, StringConstraints(pattern=PERIOD)]
ComparisonName = Annotated[str, StringConstraints(pattern=COMPARISON)]

#: The description of columns that group by cost categories.
CATEGORY_GROUPS = "`category:<key>` (`category:<key>@1`: by what its values belong to, `@2`: one level higher, …)"
#: Each tag to group by is a join; about a hundred joins need more memory than the query engine has.
MAX_GROUPS = 20
#: The maximum number of units of time in a response.
MOST_TIMES = 1000
#: The default period.
USUAL_PERIOD = "30d"


class Filters(StrictModel):
    """Columns of a dataset and the values that rows may have there; each field is named like the column."""

    tags: dict[TagKey, list[Text]] = Field(default_factory=dict)
    categories: dict[CategoryKey, list[Text]] = Field(default_factory=dict)

    def by_category(self, *, excludes: bool = False) -> tuple[CategoryFilter, ...]:
        """Return the filters by cost categories, whose values are separated."""
        return tuple(CategoryFilter(key, separated_values(values), excludes) for key, values in self.categories.items())

    def filters(self, dataset: Dataset, *, excludes: bool = False) -> tuple[tuple[ColumnFilter, ...], TagFilters]:
        """Return the filters by columns and by tags, whose values are separated."""
        given = ((name, getattr(self, name, ())) for name in dataset.filters)
        columns = tuple(ColumnFilter(name, frozenset(values), excludes) for name, values in given if values)
        tags = tuple(TagFilter(key, separated_values(values), excludes) for key, values in self.tags.items())
        return columns, tags


def selected(
    dataset: Dataset, window: InstantRange, wanted: Filters, unwanted: Filters, tags: TagFilters = ()
) -> Selection:
    """Return the rows of ``dataset`` within ``window`` that ``wanted`` selects and ``unwanted`` does not exclude;
    ``tags`` are further filters."""
    columns, tagged = wanted.filters(dataset)
    no_columns, not_tagged = unwanted.filters(dataset, excludes=True)
    categories = wanted.by_category() + unwanted.by_category(excludes=True)
    return Selection(window, columns + no_columns, tagged + not_tagged + tags, categories=categories)


class NamedPeriodQuery(CommonParameters):
    """Period parameters: a name or dates."""

    period: PeriodName | None = Field(
        default=None,
        description="A period by its name, instead of dates: `7d` (any number of days), `week`, `month`, `quarter` "
        "and `year` until the last calculated day, the whole previous ones (`last-month`), or a month such as "
        "`2026-10`. Weeks begin on Monday.",
        examples=["30d"],
    )

    @classmethod
    def cross_checks(cls, raw: dict[str, Any], now: datetime) -> list[InvalidParameter]:
        """Check the dates, and that a named period comes without dates."""
        if raw.get("period") is None or not raw.keys() & {"start_date", "end_date"}:
            return super().cross_checks(raw, now)
        return [*super().cross_checks(raw, now), InvalidParameter("period", "should not be given together with dates")]

    def chosen_period(self, lookback_days: int, last: date | None) -> CalendarPeriod:
        """Return the requested days; ``last`` is the last calculated day, or None for the day of the request."""
        start, end = self.days(lookback_days)
        if self.period is None:
            return CalendarPeriod(start, end)
        return named_period(self.period, last or end)


class PeriodQuery(NamedPeriodQuery, FactsParameters):
    """Period parameters of endpoints that read facts."""


class UsualPeriodQuery(PeriodQuery):
    """Period parameters; without any, they mean the last 30 calculated days."""

    def chosen_period(self, lookback_days: int, last: date | None) -> CalendarPeriod:
        """Return the requested days; ``last`` is the last calculated day."""
        usual = self.period is None and self.start_date is None and self.end_date is None
        params = self.model_copy(update={"period": USUAL_PERIOD}) if usual else self
        return super(UsualPeriodQuery, params).chosen_period(lookback_days, last)


class DatasetQuery(PeriodQuery):
    """Parameters of a query of :attr:`dataset`. A subclass takes its columns from a model of :class:`Filters`, and has
    one more of these in the field ``excluded``."""

    takes_filters: ClassVar[bool] = True
    dataset: ClassVar[Dataset]

    def further_filters(self) -> TagFilters:
        """Filters by tags that have parameters of their own."""
        return ()

    def selection(self, lookback_days: int, last: date | None = None) -> Selection:
        """Return the requested rows; ``last`` is the last calculated day."""
        chosen = self.chosen_period(lookback_days, last)
        wanted, unwanted = cast("Filters", self), cast("Filters", getattr(self, EXCLUDED_FIELD))
        return selected(
            self.dataset, instants(chosen.start, chosen.end, self.zone), wanted, unwanted, self.further_filters()
        )


class ComparingQuery(DatasetQuery):
    """Parameters of a comparison of two periods."""

    dataset: ClassVar[Dataset] = CHARGEBACKS

    compare: ComparisonName = Field(
        default="previous",
        description="The other period: `previous` (as many days before), `year` (the same dates a year before), `none`,"
        " or two dates, `2026-09-01..2026-09-30`.",
        examples=["previous"],
    )

    @field_validator("compare")
    @classmethod
    def _possible(cls, value: str) -> str:
        compared_period(value, CalendarPeriod(date(2001, 1, 1), date(2001, 1, 1)))
        return value

    def _periods(self, lookback_days: int, last: date | None) -> tuple[CalendarPeriod, CalendarPeriod | None]:
        """Return the period and the one that it is compared with; None if that would be before the first date."""
        usual = self.period is None and self.start_date is None and self.end_date is None
        params = self.model_copy(update={"period": USUAL_PERIOD}) if usual else self
        period = params.chosen_period(lookback_days, last)
        try:
            return period, compared_period(self.compare, period)
        except (OverflowError, ValueError):
            return period, None

    def comparison(self, lookback_days: int, last: date | None) -> Comparison:
        """Return the rows of both periods; ``last`` is the last calculated day."""
        period, compared = self._periods(lookback_days, last)
        selection = replace(self.selection(lookback_days, last), window=instants(period.start, period.end, self.zone))
        previous = None if compared is None else instants(compared.start, compared.end, self.zone)
        return Comparison(period, compared, selection, previous)


Basis = Annotated[
    Literal["accrual", "posted"],
    Field(
        description="`accrual`: costs belong to the day of the usage. `posted`: costs belong to the month to which "
        "they are posted. A closed month has its costs as of its closing and, as corrections, changes of earlier "
        "months since the previous month was closed; an open month has its present costs. The period must be whole "
        "UTC months."
    ),
]
_POSTED_UNITS = ("month", "all")


class PostedQuery(DatasetQuery):
    """Parameters of accrued or posted costs."""

    basis: Basis = "accrual"
    scenario: Annotated[str, StringConstraints(max_length=32)] | None = Field(
        default=None,
        description="The name of a shadow: return what its policies would have charged on the days that it has, "
        "instead of what was charged.",
        examples=[None],
    )

    @property
    def is_posted(self) -> bool:
        """Whether posted costs are requested."""
        return self.basis == "posted"

    @property
    def with_posted_defaults(self) -> Self:
        """Return these parameters; posted costs are by month unless another unit was sent."""
        if self.is_posted and "time_bucket" in type(self).model_fields and "time_bucket" not in self.model_fields_set:
            return self.model_copy(update={"time_bucket": "month"})
        return self

    @classmethod
    def cross_checks(cls, raw: dict[str, Any], now: datetime) -> list[InvalidParameter]:
        """Check that posted costs are requested by months."""
        errors = super().cross_checks(raw, now)
        if raw.get("scenario") is not None and (raw.get("basis") == "posted" or raw.get("as_of") is not None):
            errors.append(InvalidParameter("scenario", "has neither a past nor books: leave as_of and basis out"))
        if raw.get("basis") != "posted":
            return errors
        if raw.get("timezone", "UTC") != "UTC":
            errors.append(InvalidParameter("timezone", "should be UTC with basis=posted: months are closed in UTC"))
        if raw.get("time_bucket", "month") not in _POSTED_UNITS:
            errors.append(InvalidParameter("time_bucket", "should be month or all with basis=posted"))
        return errors


class GroupedQuery(DatasetQuery):
    """Parameters of sums by columns; a subclass declares ``group_by`` with :func:`groups_of`."""

    group_by: list[str] = Field(default=[])

    @field_validator("group_by", check_fields=False)
    @classmethod
    def _known(cls, value: list[str]) -> list[str]:
        check_columns(value, cls.dataset.groups)
        return list(dict.fromkeys(value))


def groups_of(dataset: Dataset, default: str) -> Any:
    """Return the field ``group_by`` of an aggregate of ``dataset``."""
    return Field(
        default=[default],
        max_length=MAX_GROUPS,
        description=f"Columns to group by, repeatable: {', '.join(dataset.groups)}, `tag:<key>`, or "
        f"{CATEGORY_GROUPS}; at most {MAX_GROUPS}.",
        json_schema_extra={"items": column_or_tag(dataset.groups)},
    )


def column_or_tag(columns: Iterable[str]) -> dict[str, Any]:
    """Return the JSON schema of the name of a column, ``tag:<key>`` or ``category:<key>``."""
    keyed = [{"type": "string", "pattern": pattern} for pattern in (TAG_PARAMETER, CATEGORY_COLUMN)]
    return {"anyOf": [{"type": "string", "enum": list(columns)}, *keyed]}


def check_columns(names: Iterable[str], columns: Collection[str]) -> None:
    """Check that every name is a column, ``tag:<key>`` or ``category:<key>``.

    Raises:
        ValueError: one is neither.
    """
    for name in names:
        if name not in columns and not is_tag(name) and not re.fullmatch(CATEGORY_COLUMN, name):
            raise ValueError(f"{name[:80]!r} should be one of {', '.join(columns)}, tag:<key> or category:<key>")


def _cost_column(name: str) -> str:
    check_columns([name], COST_COLUMNS)
    return name


#: What costs can be grouped by.
CostColumn = Annotated[str, AfterValidator(_cost_column)]


def is_tag(name: str) -> bool:
    """Return whether ``name`` is ``tag:<key>``."""
    return name.startswith(TAG_PREFIX) and is_tag_key(name.removeprefix(TAG_PREFIX))


class CostColumns(Filters):
    """The columns by which costs are filtered."""

    identity_id: list[Text] = Field(default=[], description="Only costs charged to this identity.")
    product_type: list[Text] = Field(default=[], description="Only this product type.")
    resource_id: list[Id] = Field(default=[], description="Only costs of this resource.")
    cost_type: list[CostType] = Field(default=[], description="Only usage cost, or only shared cost.")
    product_category: list[Text] = Field(default=[], description="Only this product category.")
    environment_id: list[OptionalText] = Field(
        default=[], description="Only costs in this environment; empty: costs in none."
    )
    cluster_id: list[OptionalText] = Field(
        default=[],
        description="Only costs of resources in this Kafka cluster, as the inventory has it now; empty: of those in "
        "none.",
    )
    allocation_method: list[Text] = Field(default=[], description="Only what was allocated by this method.")
    allocation_detail: list[Text] = Field(default=[], description="Only what was allocated for this reason.")
    ecosystem: list[Text] = Field(default=[], description="Only costs on the bill of this ecosystem.")


class ChargebackColumns(CostColumns):
    """The columns by which chargeback rows are filtered."""

    line_id: list[Text] = Field(default=[], description="Only the shares of this billing line.")


class ChargebackFilters(ChargebackColumns, DatasetQuery):
    """The filters of chargebacks."""

    dataset: ClassVar[Dataset] = CHARGEBACKS

    excluded: ChargebackColumns = ChargebackColumns()
