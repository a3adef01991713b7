"""The dashboards of ``deploy/grafana`` are valid for Grafana, and each of their queries returns rows.

Grafana is in no package registry, so the form of its JSON is written here, from its schema of dashboards and the
documentation of the data source Infinity.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import jsonschema
import pytest
import yaml

from tests.contract.records import Client, Everything

GRAFANA = Path(__file__).parents[2] / "deploy" / "grafana"
FILES = sorted(GRAFANA.glob("dashboards/*.json"))
TYPE = "yesoreyeram-infinity-datasource"
#: A few days are not enough to find anomalies.
MAY_BE_EMPTY = {"What stands out"}


def _object(**properties: Any) -> dict[str, Any]:
    """Return the schema of an object with these properties, and others."""
    return {"type": "object", "required": list(properties), "properties": properties}


def _list(items: Any) -> dict[str, Any]:
    return {"type": "array", "minItems": 1, "items": items}


_TEXT = {"type": "string", "minLength": 1}
_COUNT = {"type": "integer", "minimum": 0}
_SOURCE = _object(type={"const": TYPE}, uid={"const": "chargeback"})
_QUERY = _object(
    refId=_TEXT,
    datasource=_SOURCE,
    type={"const": "json"},
    source={"const": "url"},
    parser={"const": "backend"},
    format={"enum": ["table", "timeseries"]},
    url={"type": "string", "pattern": "^/api/v1/"},
    url_options=_object(method={"const": "GET"}, params={"type": "array", "items": _object(key=_TEXT, value=_TEXT)}),
    root_selector={"type": "string"},
    columns=_list(_object(selector=_TEXT, text=_TEXT, type={"enum": ["string", "number", "timestamp", "boolean"]})),
)
_PANEL = _object(
    id={"type": "integer", "minimum": 1},
    type={"enum": ["stat", "table", "timeseries"]},
    title=_TEXT,
    description=_TEXT,
    datasource=_SOURCE,
    gridPos=_object(x=_COUNT, y=_COUNT, w={"type": "integer", "minimum": 1, "maximum": 24}, h=_COUNT),
    targets=_list(_QUERY),
    fieldConfig=_object(defaults={"type": "object"}, overrides={"type": "array"}),
    options={"type": "object"},
)
_DASHBOARD = _object(
    id={"type": "null"},
    uid={"type": "string", "pattern": "^[a-z0-9-]{1,40}$"},
    title=_TEXT,
    description=_TEXT,
    tags=_list(_TEXT),
    schemaVersion={"type": "integer", "minimum": 36},
    time=_object(**{"from": _TEXT, "to": _TEXT}),
    templating=_object(list=_list(_object(type={"enum": ["query", "custom"]}, name=_TEXT, label=_TEXT))),
    panels=_list(_PANEL),
)


def dashboard(file: Path) -> dict[str, Any]:
    """Return a dashboard."""
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return found


def queries(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every query of a dashboard's panels and variables, with its name."""
    found = dashboard(file)
    for variable in found["templating"]["list"]:
        if variable["type"] == "query":
            yield variable["name"], variable["query"]["infinityQuery"]
    for panel in found["panels"]:
        for target in panel["targets"]:
            yield panel["title"], target


def test_the_dashboards_are_what_grafana_reads() -> None:
    """There are four dashboards, with unique ids and panels that do not overlap."""
    assert [file.stem for file in FILES] == ["by-category", "overview", "pipeline-health", "topics"]
    uids = set()
    for file in FILES:
        found = dashboard(file)
        jsonschema.validate(found, _DASHBOARD)
        uids.add(found["uid"])
        cells = [
            (panel["gridPos"]["x"] + column, panel["gridPos"]["y"] + row)
            for panel in found["panels"]
            for column in range(panel["gridPos"]["w"])
            for row in range(panel["gridPos"]["h"])
        ]
        assert len(cells) == len(set(cells))
        assert max(column for column, _ in cells) < 24
        assert len({panel["id"] for panel in found["panels"]}) == len(found["panels"])
        known = {variable["name"] for variable in found["templating"]["list"]}
        used = set(re.findall(r"\$\{(\w+)\}", json.dumps(found)))
        assert used == known, file.name
    assert len(uids) == len(FILES)


def test_the_data_source_is_the_one_of_the_dashboards() -> None:
    """The secret comes from the environment, and only the service can be accessed."""
    text = (GRAFANA / "provisioning" / "datasources" / "chargeback.yaml").read_text(encoding="utf-8")
    (source,) = yaml.safe_load(text)["datasources"]
    assert (source["type"], source["uid"], source["access"]) == (TYPE, "chargeback", "proxy")
    assert source["jsonData"]["allowedHosts"] == [source["url"]] == ["$CHARGEBACK_URL"]
    assert source["secureJsonData"] == {"bearerToken": "$CHARGEBACK_TOKEN"}
    providers = yaml.safe_load((GRAFANA / "provisioning" / "dashboards" / "chargeback.yaml").read_text("utf-8"))
    assert [each["type"] for each in providers["providers"]] == ["file"]


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.stem))
def test_every_query_finds_rows(client: Client, everything: Everything, file: Path) -> None:
    """Each query is sent as Grafana sends it, for the days of the organisation; the selected columns exist."""
    values = {
        "tenant": "acme",
        "category": "cost_center",
        "bucket": "day",
        "__from:date:YYYY-MM-DD": everything.days[0],
        "__to:date:YYYY-MM-DD": everything.days[-1],
    }

    def _filled(text: str) -> str:
        return re.sub(r"\$\{([^}]+)\}", lambda found: values[found[1]], text)

    for name, query in queries(file):
        parameters = httpx.QueryParams(
            [(_filled(each["key"]), _filled(each["value"])) for each in query["url_options"]["params"]]
        )
        response = client.get(_filled(query["url"]), params=parameters)
        assert response.status_code == 200, (name, response.text)
        rows = _selected(response.json(), query["root_selector"])
        rows = rows if isinstance(rows, list) else [rows]
        assert rows or name in MAY_BE_EMPTY, name
        for column in query["columns"]:
            shown = [_selected(row, column["selector"]) for row in rows]
            if column["type"] == "number":
                assert all(each is None or float(each) is not None for each in shown), (name, column)
            if column["type"] in {"number", "timestamp"} and rows:
                assert any(each is not None for each in shown) or column["text"] in {"Before", "Forecast"}, (
                    name,
                    column,
                )


def _selected(value: Any, selector: str) -> Any:
    """Return what a selector such as ``breakdowns[0].items`` selects; every part of it must exist."""
    for step in filter(None, re.split(r"\.|\[(\d+)\]", selector)):
        value = value[int(step)] if step.isdigit() else value[step]
    return value
