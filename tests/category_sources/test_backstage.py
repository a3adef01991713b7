"""Catalog files of Backstage."""

from __future__ import annotations

from pathlib import Path

import pytest

from chargeback.category_sources.backstage import source
from chargeback.category_sources.contract import RegisteredValue, SourceContent
from chargeback.errors import ConfigurationError

CATALOG = """\
apiVersion: backstage.io/v1alpha1
kind: Component
metadata:
  name: payments-api
  annotations:
    chargeback/identity: sa-1, sa-2
    chargeback/topic: |
      pay.orders
      pay.refunds
spec: {owner: "group:default/payments", type: service}
---
apiVersion: backstage.io/v1alpha1
kind: Resource
metadata: {name: carts}
spec: {type: kafka-topic, owner: shop}
---
apiVersion: backstage.io/v1alpha1
kind: System
metadata: {name: lake, annotations: {chargeback/resource: lkc-1, chargeback/cost_center: data, chargeback/value: other}}
spec: {owner: payments}
---
apiVersion: backstage.io/v1alpha1
kind: API
metadata: {name: orphan, annotations: {kafka/topic: lost}}
---
apiVersion: backstage.io/v1alpha1
kind: Component
metadata: {name: nothing-of-kafka}
spec: {owner: payments}
---
apiVersion: v1
kind: Component
metadata: {name: foreign, annotations: {kafka/topic: foreign}}
spec: {owner: payments}
"""
GROUPS = """\
apiVersion: backstage.io/v1alpha1
kind: Group
metadata: {name: payments}
spec: {type: team, profile: {displayName: Payments}, parent: "group:retail"}
---
apiVersion: backstage.io/v1alpha1
kind: Group
metadata: {name: retail, title: Retail}
spec: {type: unit, parent: nowhere}
---
apiVersion: backstage.io/v1alpha1
kind: Group
metadata: {name: unused}
spec: {type: team}
"""


def read(folder: Path, key: str = "cost_center", **files: str) -> SourceContent:
    """Write these files to a folder and return the result of reading it."""
    for name, text in files.items():
        file = folder / f"{name}.yaml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return source.read(folder, key)


def test_a_catalog(tmp_path: Path) -> None:
    """Annotated components belong to their owners, and groups become values; other files are ignored."""
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "x.yaml").write_text("{", encoding="utf-8")
    (tmp_path / "README.md").write_text("{", encoding="utf-8")
    found = read(tmp_path, **{"shop/catalog-info": CATALOG, "org": GROUPS})
    assert [(each.entity_type, each.entity_id, each.value) for each in found.entries] == [
        ("resource", "lkc-1", "data"),
        ("identity", "sa-1", "payments"),
        ("identity", "sa-2", "payments"),
        ("topic", "pay.orders", "payments"),
        ("topic", "pay.refunds", "payments"),
        ("topic", "carts", "shop"),
    ]
    assert {each.place for each in found.entries[1:5]} == {"shop/catalog-info.yaml, document 1"}
    assert found.values == [RegisteredValue("payments", "Payments", "retail"), RegisteredValue("retail", "Retail")]
    assert found.notes == [
        "left out, because there is neither an owner nor a value: API orphan (shop/catalog-info.yaml, document 4)"
    ]


def test_the_value_for_a_category(tmp_path: Path) -> None:
    """An annotation for the category has priority over the general one, and that over the owner."""
    found = read(tmp_path, "team", catalog=CATALOG)
    assert [each.value for each in found.entries if each.entity_id == "lkc-1"] == ["other"]
    one = source.read(tmp_path / "catalog.yaml", "team")
    assert [each.place for each in one.entries][:1] == ["catalog.yaml, document 3"]
    assert len(one.entries) == len(found.entries)


def test_a_name_twice(tmp_path: Path) -> None:
    """If two components with one owner use a topic, it is one entry."""
    found = read(tmp_path, one=CATALOG, two=CATALOG)
    assert len(found.entries) == 6
    assert {each.place.partition(",")[0] for each in found.entries} == {"one.yaml"}


def test_what_is_no_yaml(tmp_path: Path) -> None:
    """The error names each file that cannot be read."""
    with pytest.raises(ConfigurationError) as error:
        read(tmp_path, a="a: [", b="{{ x }}: {{", c=CATALOG)
    assert [str(each) for each in error.value.problems] == [
        "a.yaml: is not YAML: expected the node content, but found '<stream end>' (line 1)",
        "b.yaml: is not YAML: expected the node content, but found '<stream end>' (line 1)",
    ]
