"""The bounds of single keys."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from chargeback.config import load_configuration
from chargeback.config.problems import walk
from chargeback.config.settings import FileSettings
from chargeback.ecosystems.confluent_cloud.topics import TopicSettings
from chargeback.ecosystems.discovery import load_ecosystems
from chargeback.emitters.discovery import discover_emitters
from chargeback.errors import ConfigurationError
from tests.config.conftest import CLOUD, Load, Problems, tenant


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("lookback_days", "365", "at most 364"),
        ("cutoff_days", "0", "at least 1"),
        ("cutoff_days", "true", "should be a whole number"),
        ("retention_days", "731", "at most 730"),
        ("gather_failure_threshold", "0", "at least 1"),
        ("allocation_retry_limit", "11", "at most 10"),
        ("currency", "euro", "three capital letters"),
        ("journal", "{by: product_type}", "tenants.acme.journal.by: should"),
        ("journal", "{clearing_account: ''}", "journal.clearing_account: should not be empty"),
        ("journal", "{templates: {sap: journal/sap.csv.j2}}", "should be a file that can be read: No such file"),
        ("journal", "{templates: {sap: sap.html}}", "should be a file whose name ends with .csv, .json, .xml, .txt"),
        ("statements", "{format: {numbers: '1234.56'}}", "should be one of '1,234.56', '1.234,56' or '1 234,56'"),
        ("statements", "{format: {dates: 11/14/2026}}", "should be one of '14 November 2026', '14.11.2026' or"),
        ("statements", "{format: {currency: left}}", "format.currency: should be one of 'after' or 'before'"),
        ("statements", "{format: {numbers: 1.234,56}}", "format.56: "),
        ("currencies", "{EURO: {}}", "should be a currency code of ISO 4217"),
        ("currencies", '{EUR: {"2026-13": "0.9"}}', "should be a month such as 2026-10"),
        ("currencies", '{EUR: {"2026-10": 0.9}}', "quote the number"),
        ("currencies", '{EUR: {"2026-10": "0"}}', "should be a number above 0"),
        ("currencies", '{EUR: {"2026-10": "0.123456789"}}', "should have at most 8 decimal places"),
        ("currencies", '{USD: {"2026-10": "1"}}', "should not contain USD, the currency of the bill"),
        ("tenant_execution_timeout_seconds", "-1", "at least 0"),
        ("topic_attribution_retry_limit", "0", "at least 1"),
        ("zero_gather_deletion_threshold", "0", "-1 (an empty listing never deletes)"),
        ("metrics_prefetch_workers", "21", "at most 20"),
        ("tenant_id", "12", "should be a string; quote numbers"),
        ("storage", "{}", "this key is required"),
        ("lookback_days", '"many"', "should be a whole number"),
    ],
)
def test_bounds_of_a_tenant(problems: Problems, key: str, value: str, words: str) -> None:
    """A value outside its bounds is refused, and the message has the bound."""
    assert words in "\n".join(problems(tenant(**{key: value})))


@pytest.mark.parametrize(
    ("section", "words"),
    [
        ("api: {port: 0}", "api.port: should be at least 1"),
        ("api: {allowed_hosts: [https://costs.example.com]}", "should be a host name without scheme and port"),
        ('api: {allowed_hosts: ["10.0.0.7:8443"]}', "should be a host name without scheme and port"),
        ('api: {allowed_hosts: ["costs.example.com:8443"]}', "should be a host name without scheme and port"),
        ("api: {path_prefix: apps/chargeback}", "should be a path that begins with a slash and ends without one"),
        ("api: {path_prefix: /apps/chargeback/}", "should be a path that begins with a slash and ends without one"),
        ('api: {path_prefix: "/"}', "should be a path that begins with a slash and ends without one"),
        ('api: {path_prefix: ""}', "should be a path that begins with a slash and ends without one"),
        ("api: {path_prefix: /apps//chargeback}", "should be a path that begins with a slash and ends without one"),
        ("api: {path_prefix: /apps/..}", "should be a path that begins with a slash and ends without one"),
        ("api: {path_prefix: /apps/charge%62ack}", "should be a path that begins with a slash and ends without one"),
        ("api: {request_timeout_seconds: 0}", "at least 1"),
        ("api: {cors_origins: x}", "should be a list"),
        ("api: {query_memory: 2}", "should be a size with its unit, such as 2GB or 512MiB"),
        ("api: {query_memory: much}", "should be a size with its unit"),
        ("api: {query_memory: 63MiB}", "should be at least 64MiB"),
        ("api: {query_threads: 0}", "at least 1"),
        ("api: {query_threads: 257}", "at most 256"),
        ("features: {max_parallel_tenants: 65}", "at most 64"),
        ("features: {worker_port: 70000}", "at most 65535"),
        ('logging: {format: "%(nonsense)s"}', "should be the word json, or a format"),
        ("logging: {format: plain}", "should be the word json, or a format"),
        ("logging: {per_module_levels: {httpx: quiet}}", "logging.per_module_levels.httpx: should be one of"),
    ],
)
def test_bounds_of_sections(problems: Problems, section: str, words: str) -> None:
    """Sections of the service have bounds as well."""
    assert words in "\n".join(problems(f"{section}\n{tenant()}"))


def test_numbers_from_the_environment(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers and booleans may come from variables, and log levels may be lower case."""
    monkeypatch.setenv("CB_PORT", "9000")
    monkeypatch.setenv("CB_CORS", "true")
    text = 'logging: {level: debug}\napi: {port: "${CB_PORT}", enable_cors: "${CB_CORS}"}\n' + tenant()
    configuration = load(text)
    assert (configuration.api.port, configuration.api.enable_cors) == (9000, True)
    assert configuration.logging.level == "DEBUG"


@pytest.mark.parametrize(
    ("text", "size"), [("2GB", 2 * 10**9), ("512MiB", 512 * 2**20), ("1.5 gib", 3 * 2**29), ("100000KB", 10**8)]
)
def test_sizes_have_units(load: Load, text: str, size: int) -> None:
    """A size is a number with a decimal or binary unit, in upper or lower case."""
    assert load(f'api: {{query_memory: "{text}", query_threads: 3}}\n' + tenant()).api.query_memory == size


def test_the_machine_decides_by_default(load: Load) -> None:
    """By default, the query engine has no configured limits."""
    api = load(tenant()).api
    assert (api.query_memory, api.query_threads) == (None, None)


POLICY = "{portions: [{share: '1', try: [usag]}]}"


def integers() -> dict[str, tuple[FieldInfo, object]]:
    """Return every key whose value is an integer."""
    models: list[tuple[type[BaseModel], str]] = [(FileSettings, "")]
    models += [(each.settings_model, f"{name}.") for name, each in load_ecosystems(None).ecosystems.items()]
    models += [(each.params_model, f"{name}.") for name, each in discover_emitters().types.items()]
    models += [(TopicSettings, "topic_attribution.")]
    found = {path: info for model, prefix in models for path, info in walk(model, prefix)}
    return {
        path: (info, info.annotation) for path, info in found.items() if re.search(r"\bint\b", str(info.annotation))
    }


@pytest.mark.parametrize("path", sorted(integers()))
def test_every_integer_has_bounds(path: str) -> None:
    """Every integer has bounds, so that no calculation with it fails."""
    info, annotation = integers()[path]
    text = f"{info.metadata} {annotation}"
    assert re.search(r"\b(ge|gt)=", text), text
    assert re.search(r"\b(le|lt)=", text), text


def test_there_are_integers() -> None:
    """The test above has keys to check."""
    assert {"features.refresh_interval", "confluent_cloud.min_refresh_gap_seconds"} <= integers().keys()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("features: {refresh_interval: 99999999999999999}", "features.refresh_interval: should be at most 2678400"),
        ("features: {refresh_interval: %s}" % ("9" * 5000), "features.refresh_interval: a number has at most"),
        ("plugins_path: " + "a" * 5000, "plugins_path: is too long"),
        (r'plugins_path: "a\0"', "plugins_path: must be UTF-8 text"),
        ("plugins_path: ~nobody-of-this-name", "plugins_path: begins with a home folder"),
    ],
)
def test_extreme_values(problems: Problems, text: str, words: str) -> None:
    """An extreme value is a one-line problem."""
    assert words in problems(f"{text}\n{tenant()}")[0]


@pytest.mark.parametrize(
    ("storage", "words"),
    [
        ('{connection_string: "sqlite:///%s"}' % ("a" * 5000), "connection_string: is too long"),
        (r'{connection_string: "sqlite:///a\0"}', "connection_string: must be UTF-8 text"),
        ('{connection_string: "sqlite:///a", facts_path: "%s"}' % ("a/" * 2500), "facts_path: is too long"),
        ('{connection_string: "sqlite:///~nobody-of-this-name/a"}', "connection_string: begins with a home folder"),
        ('{connection_string: "postgresql://h:99999999/x", facts_path: x}', "port should be a number from 1 to 65535"),
    ],
)
def test_extreme_storage(problems: Problems, storage: str, words: str) -> None:
    """Invalid paths and ports are reported with their key."""
    assert words in problems(tenant(storage=storage))[0]


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"ecosystem": "confluent"}, "did you mean confluent_cloud?"),
        ({"plugin_settings": f"{{{CLOUD}, metrics: {{type: prom, url: 'http://x'}}}}"}, "one of 'prometheus'"),
        ({"plugin_settings": f"{{{CLOUD}, chargeback_granularity: dail}}"}, "one of 'hourly' or 'daily'"),
        (
            {"plugin_settings": f"{{{CLOUD}, allocation_policies: {{X: {POLICY}}}}}"},
            "the value is not an allocation method; use usage(…)",
        ),
    ],
)
def test_advice_about_typos(problems: Problems, keys: dict[str, str], said: str) -> None:
    """Suggested names are shown in full, even if they begin with the value."""
    assert said in "\n".join(problems(tenant(**keys)))


def test_a_file_that_is_no_configuration() -> None:
    """A file that is too large or has an invalid name is a one-line problem."""
    with pytest.raises(ConfigurationError, match="larger than 32 MiB"):
        load_configuration(Path("/dev/zero"))
    with pytest.raises(ConfigurationError, match="File name too long"):
        load_configuration(Path("a" * 300))
    with pytest.raises(ConfigurationError, match="character NUL"):
        load_configuration(Path("a\0b"))
