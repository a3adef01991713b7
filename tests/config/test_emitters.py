"""The emitters of a configuration."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

from chargeback.emitters.csv_files import CsvParams
from tests.config.conftest import CLOUD, Load, Problems, tenant
from tests.emitters.plugins import installed

AT = "tenants.acme.plugin_settings.emitters"
CSV = "{type: csv, name: finance, params: {output_dir: out}}"


def configured(*emitters: str, more: str = "") -> str:
    """Return a file whose tenant has these emitters."""
    return tenant(plugin_settings=f"{{{CLOUD}, emitters: [{', '.join(emitters)}]{more}}}")


def test_an_emitter_with_its_defaults(load: Load, tmp_path: Path) -> None:
    """An emitter is daily and has no limit of days; its paths start at the folder of the file."""
    (emitter,) = load(configured(CSV)).tenants["acme"].emitters
    assert (emitter.name, emitter.settings.aggregation, emitter.settings.lookback_days) == ("finance", "daily", None)
    assert emitter.params == CsvParams(output_dir=tmp_path / "out")
    assert "output_dir" not in repr(emitter)


def test_a_tenant_needs_none(load: Load) -> None:
    """Without the key, there are no emitters."""
    assert load(tenant()).tenants["acme"].emitters == ()


def test_emitters_travel_to_other_processes(load: Load) -> None:
    """A tenant that was pickled and loaded again has the same emitters."""
    acme = load(configured(CSV)).tenants["acme"]
    assert pickle.loads(pickle.dumps(acme)).emitters == acme.emitters


@pytest.mark.parametrize(
    ("emitter", "problem"),
    [
        ("{type: cvs, name: x}", f"{AT}[0].type: there is no such emitter; did you mean csv?"),
        ("{type: parquet, name: x}", f"{AT}[0].type: there is no such emitter; there are csv, focus, prometheus"),
        ("{type: csv, name: x}", f"{AT}[0].params.output_dir: this key is required"),
        ("{type: csv, name: x, params: {output_dri: o}}", f"{AT}[0].params.output_dri: unknown key; did you mean"),
        ("{type: csv, name: x, params: {output_dir: 7}}", f"{AT}[0].params.output_dir:"),
        (
            "{type: csv, name: x, params: {output_dir: o, filename_template: '../{date}'}}",
            f"{AT}[0].params.filename_template: should be a file name without a folder",
        ),
        (
            "{type: csv, name: x, params: {output_dir: o, filename_template: 'all.csv'}}",
            f"{AT}[0].params.filename_template: should contain {{date}}",
        ),
        ("{type: csv, name: 'a/b', params: {output_dir: o}}", f"{AT}[0].name: should match"),
        (
            "{type: csv, name: x, aggregation: yearly, params: {output_dir: o}}",
            f"{AT}[0].aggregation: should be one of",
        ),
        (
            "{type: csv, name: x, aggregation: hourly, params: {output_dir: o}}",
            f"{AT}[0].aggregation: finer than the data",
        ),
        ("{type: prometheus, name: x, aggregation: weekly}", f"{AT}[0].aggregation: this emitter does not support it"),
        (
            "{type: csv, name: x, lookback_days: 0, params: {output_dir: o}}",
            f"{AT}[0].lookback_days: should be at least",
        ),
        ("{type: csv, nmae: x, params: {output_dir: o}}", f"{AT}[0].nmae: unknown key; did you mean name?"),
    ],
)
def test_what_is_wrong_is_named_with_its_path(problems: Problems, emitter: str, problem: str) -> None:
    """Every mistake has the path of its key in the file."""
    found = problems(configured(emitter))
    assert any(each.startswith(problem) for each in found), found


def test_all_mistakes_at_once(problems: Problems) -> None:
    """Mistakes of several emitters and of the rest of the tenant are reported together."""
    text = tenant(plugin_settings="{ccloud_api: {key: K}, emitters: [{type: csv, name: x}, {type: no, name: y}]}")
    assert len(problems(text)) == 3


def test_hourly_where_rows_are_hourly(load: Load) -> None:
    """Hourly aggregation is accepted if the rows are hourly."""
    text = configured(
        "{type: csv, name: x, aggregation: hourly, params: {output_dir: o}}", more=", chargeback_granularity: hourly"
    )
    assert load(text).tenants["acme"].emitters[0].settings.aggregation == "hourly"


@pytest.mark.parametrize(
    ("emitters", "problem"),
    [
        ([CSV, CSV.replace(": out", ": other")], "another emitter of this tenant has this name"),
        ([CSV, "{type: csv, name: weekly, aggregation: weekly, params: {output_dir: ./x/../out}}"], "same place"),
        (["{type: prometheus, name: a}", "{type: prometheus, name: b}"], "same place"),
    ],
)
def test_emitters_that_would_overwrite_each_other(problems: Problems, emitters: list[str], problem: str) -> None:
    """Two emitters must not have the same name, or write to the same files or series."""
    (found,) = problems(configured(*emitters))
    assert found.startswith(f"{AT}[1]")
    assert problem in found


def test_emitters_of_two_tenants_that_would_overwrite_each_other(problems: Problems) -> None:
    """Emitters of two tenants with one tenant_id must not write the same files to one folder."""
    acme = configured(CSV)
    other = acme.replace("acme:", "beta:", 1).replace("acme.db", "beta.db").partition("tenants:\n")[2]
    (found,) = problems(acme + other)
    assert "finance of tenant acme and finance of tenant beta would write to the same place" in found


def test_secrets_of_emitters_are_hidden_from_the_logs(load: Load, tmp_path: Path) -> None:
    """Secret parameters of a plugin are registered for masking, and no repr shows them."""
    with installed(tmp_path):
        configuration = load(configured("{type: tiny, name: x, params: {file: f, token: very-secret-7}}"))
        assert "very-secret-7" in configuration.secrets()
        shown: list[Any] = [
            configuration,
            configuration.tenants["acme"].emitters,
            configuration.tenants["acme"].settings,
        ]
        assert "very-secret-7" not in repr(shown)


def test_a_plugin_is_configured_like_any_other(problems: Problems, tmp_path: Path) -> None:
    """The parameters of a plugin are checked, and mistakes have their path."""
    with installed(tmp_path):
        (found,) = problems(configured("{type: tiny, name: x, params: {file: f, color: red}}"))
    assert found.startswith(f"{AT}[0].params.color: unknown key; did you mean colour?")


def test_a_broken_plugin_is_an_error_only_where_it_is_wanted(load: Load, problems: Problems, tmp_path: Path) -> None:
    """A broken plugin is an error, with its reason, only if it is used."""
    with installed(tmp_path, "import no_such_module_anywhere", "broken"):
        assert load(configured(CSV)).tenants
        (found,) = problems(configured("{type: broken, name: x}"))
    assert "this emitter cannot be used" in found
    assert "no_such_module_anywhere" in found
