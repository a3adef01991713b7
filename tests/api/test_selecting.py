"""The models of the API match the declarations of the datasets."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest
from pydantic import BaseModel

from chargeback.api.routes.aggregate import AggregateParameters, AggregateQuery
from chargeback.api.routes.billing import BillingLineItem, BillingQuery
from chargeback.api.routes.chargebacks import ChargebackQuery, ChargebackRow
from chargeback.api.routes.export import ExportFilters, ExportRequest
from chargeback.api.routes.topic_attributions import TopicAggregateQuery, TopicQuery, TopicRow
from chargeback.api.selecting import DatasetQuery
from chargeback.store.queries.datasets import BILLING_LINES, CHARGEBACKS, METADATA, TAGS, TOPIC_ATTRIBUTIONS, Dataset
from chargeback.store.queries.keys import POSTING
from chargeback.store.queries.selection import CategoryFilter, TagFilter, equal

#: The field of a row with its values of cost categories.
CATEGORIES = "categories"
DATES = {"start_date": "2026-01-01", "end_date": "2026-01-02"}


@pytest.mark.parametrize(
    ("model", "dataset"),
    [(ChargebackRow, CHARGEBACKS), (BillingLineItem, BILLING_LINES), (TopicRow, TOPIC_ATTRIBUTIONS)],
)
def test_a_row_has_the_columns_of_its_dataset(model: type[BaseModel], dataset: Dataset) -> None:
    """The fields of a row are the columns of its dataset, and the reverse."""
    columns = {column.name for column in dataset.columns}
    # Names are added on request; posting columns belong to the books.
    names = {"identity_name", "resource_name", *POSTING} if model is ChargebackRow else set()
    assert set(model.model_fields) - {METADATA, TAGS, CATEGORIES} == columns | names
    assert (CATEGORIES in model.model_fields) == dataset.shows_categories
    assert (METADATA in model.model_fields, TAGS in model.model_fields) == (bool(dataset.metadata), dataset.shows_tags)


@pytest.mark.parametrize("model", [ChargebackQuery, BillingQuery, TopicQuery, ExportFilters])
def test_every_filter_of_a_dataset_is_a_parameter(model: type[BaseModel]) -> None:
    """Lists and the export accept all filters of their dataset."""
    dataset = getattr(model, "dataset", CHARGEBACKS)
    assert set(dataset.filters) <= set(model.model_fields)


@pytest.mark.parametrize("model", [AggregateQuery, TopicAggregateQuery])
def test_an_aggregate_groups_by_what_is_declared(model: type[AggregateParameters]) -> None:
    """Any declared column and any tag can be grouped by; the default is a column."""
    every = [*model.dataset.groups, "tag:team"]
    assert model.model_validate({"group_by": every}).grouping(None).by == tuple(every)
    assert set(model().group_by) < set(model.dataset.groups)


def test_a_query_selects_what_it_names() -> None:
    """Only the filters that are sent apply; tags and categories are split at commas, except after a backslash."""
    sent = {**DATES, "cost_type": ["usage"], "tags": {"team": ["a,b", "c"]}, "categories": {"team": ["x\\,y", "z"]}}
    query: DatasetQuery = AggregateQuery.model_validate(sent)
    selection = query.selection(30)
    assert selection.columns == equal(cost_type="usage")
    assert selection.tags == (TagFilter("team", frozenset("abc")),)
    assert selection.categories == (CategoryFilter("team", frozenset(["x,y", "z"])),)
    assert selection.window.start.date() == date(2026, 1, 1)
    assert ChargebackQuery(tag_key="team").selection(30).tags == (TagFilter("team"),)
    exported = ExportRequest.model_validate({"filters": {"identity_id": "sa-1", "not.tag:env": ["dev", "test"]}})
    assert exported.selection(30).columns == equal(identity_id="sa-1")
    assert exported.selection(30).tags == (TagFilter("env", frozenset(["dev", "test"]), excludes=True),)


def test_a_named_period_follows_the_last_calculated_day() -> None:
    """A named period ends with the last calculated day, and cannot be combined with dates."""
    query = BillingQuery.model_validate({"period": "7d"})
    window = query.selection(30, date(2026, 1, 20)).window
    assert (window.start.date(), window.end.date()) == (date(2026, 1, 14), date(2026, 1, 21))
    now = datetime(2026, 1, 25, tzinfo=UTC)
    both = {"period": "7d", "end_date": "2026-01-01"}
    assert [each.parameter for each in BillingQuery.cross_checks(both, now)] == ["period"]
