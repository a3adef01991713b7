"""A scope becomes filters, or an empty result; this test lists the modules that may ignore it."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path

import chargeback
from chargeback.access.scope import RowScope
from chargeback.categories.document import CostCategory
from chargeback.model.days import instants
from chargeback.store.queries.datasets import BILLING_LINES, CHARGEBACKS, TOPIC_ATTRIBUTIONS
from chargeback.store.queries.lookups import CategoryIndex, StoredCategory
from chargeback.store.queries.plan import category_keys, narrowed
from chargeback.store.queries.selection import CategoryFilter, ColumnFilter, Selection, TagFilter, equal

WINDOW = instants(date(2026, 1, 1), date(2026, 1, 31))
CATEGORIES = CategoryIndex({"cost_center": StoredCategory(CostCategory("cost_center"), 1)})
#: What depends on the whole bill and shows none of its rows: the calendar, the sums of dimensions (from which the
#: scope selects), causes of changed bills, whether days are charged as billed, the division of a month's cents among
#: its statements, whether these have several bills, and the latest price for comparing costs.
WHOLE = {
    "reports/statements/compile.py": 2,
    "reports/comparable_costs.py": 1,
    "reports/forecast.py": 1,
    "reports/changes.py": 2,
    "store/queries/costs.py": 2,
    "store/queries/daily_totals.py": 1,
    "reports/closing/reach.py": 1,
    "reports/statements/posted.py": 1,
}


def test_conditions_are_filters_beside_those_of_the_request() -> None:
    """Rows must match every condition of the scope, and the request's filters."""
    scope = RowScope.of(
        {"identity_id": ["a", "b"], "tag:team": ["x"], "category:cost_center": ["y"], "environment_id": ["e"]}
    )
    asked = Selection(WINDOW, equal(identity_id="a"), categories=(CategoryFilter("cost_center", frozenset("z")),))
    found = narrowed(asked, CHARGEBACKS, scope, CATEGORIES)
    assert found.window == WINDOW
    assert set(found.columns) == {
        *asked.columns,
        ColumnFilter("identity_id", frozenset("ab")),
        ColumnFilter("environment_id", frozenset("e")),
    }
    assert found.tags == (TagFilter("team", frozenset("x"), is_present=True),)
    assert found.categories == (*asked.categories, CategoryFilter("cost_center", frozenset("y")))
    assert category_keys(scope) == ("cost_center",)


def test_topics_have_columns_of_their_own() -> None:
    """The resource of a topic's row, like its cluster, is the cluster."""
    for name, column in (
        ("resource_id", "cluster_resource_id"),
        ("cluster_id", "cluster_resource_id"),
        ("environment_id", "env_id"),
        ("product_type", "product_type"),
    ):
        found = narrowed(Selection(WINDOW), TOPIC_ATTRIBUTIONS, RowScope.of({name: ["x"]}), CATEGORIES)
        assert found.columns == (ColumnFilter(column, frozenset("x")),)


def test_nothing_is_selected_where_the_filter_does_not_exist() -> None:
    """Bills and topics have no identities, and a removed cost category has no rows."""
    for dataset, condition in (
        (BILLING_LINES, {"identity_id": ["a"]}),
        (TOPIC_ATTRIBUTIONS, {"identity_id": ["a"], "environment_id": ["e"]}),
        (CHARGEBACKS, {"category:gone": ["a"]}),
    ):
        window = narrowed(Selection(WINDOW), dataset, RowScope.of(condition), CATEGORIES).window
        assert window.start == window.end


def test_only_listed_modules_leave_a_scope_out() -> None:
    """Queries of the whole bill all use one function, whose uses this test finds."""
    package = Path(chargeback.__file__).parent
    found = {}
    for file in package.rglob("*.py"):
        count = len(re.findall(r"\.unscoped\(\)", file.read_text(encoding="utf-8")))
        if count:
            found[file.relative_to(package).as_posix()] = count
    assert found == WHOLE
