"""A scope as a part of every selection: what may be seen is what the filters of the scope select."""

from __future__ import annotations

from dataclasses import replace

from chargeback.access.scope import CATEGORY, TAG, RowScope
from chargeback.model.days import InstantRange
from chargeback.store.queries.category_index import CategoryIndex
from chargeback.store.queries.datasets import Dataset
from chargeback.store.queries.selection import CategoryFilter, ColumnFilter, Selection, TagFilter


def narrowed(selection: Selection, dataset: Dataset, scope: RowScope, categories: CategoryIndex) -> Selection:
    """Return the selection with the filters of a scope as well.

    Nothing is selected where the dataset cannot be filtered so, or the tenant has no such cost category.
    """
    columns, tags, by_category = selection.columns, selection.tags, selection.categories
    for name, values in scope.conditions:
        if name.startswith(TAG):
            tags += (TagFilter(name.removeprefix(TAG), values),)
        elif name.startswith(CATEGORY):
            key = name.removeprefix(CATEGORY)
            if key not in categories.by_key:
                return _nothing(selection)
            by_category += (CategoryFilter(key, values),)
        else:
            column = dataset.filter_column(name)
            if column is None:
                return _nothing(selection)
            columns += (ColumnFilter(column, values),)
    return replace(selection, columns=columns, tags=tags, categories=by_category)


def _nothing(selection: Selection) -> Selection:
    start = selection.window.start
    return replace(selection, window=InstantRange(start, start))


def category_keys(scope: RowScope) -> tuple[str, ...]:
    """Return the cost categories by which a scope chooses rows, ascending."""
    return tuple(name.removeprefix(CATEGORY) for name, _ in scope.conditions if name.startswith(CATEGORY))
