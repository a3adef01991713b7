"""Loading the whole file."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from chargeback.config import load_configuration
from chargeback.config.configuration import TopicStatus
from chargeback.config.storage import StorageLocation
from chargeback.errors import ConfigurationError
from tests.config.conftest import CLOUD, Load, Problems, tenant


def test_a_minimal_file_has_every_default(load: Load) -> None:
    """A tenant with only the required settings gets the documented defaults."""
    configuration = load(tenant())
    acme = configuration.tenants["acme"]
    assert (configuration.api.host, configuration.api.port) == ("127.0.0.1", 8080)
    assert configuration.api.request_timeout_seconds == 30
    assert (configuration.features.refresh_interval, configuration.features.max_parallel_tenants) == (1800, 4)
    assert (acme.settings.lookback_days, acme.settings.cutoff_days, acme.settings.retention_days) == (200, 5, 250)
    assert acme.ecosystem.name == "confluent_cloud"
    assert type(acme.plugin_settings) is acme.ecosystem.settings_model
    assert acme.topic_status is TopicStatus.DISABLED


def test_relative_paths_start_at_the_file(load: Load, tmp_path: Path) -> None:
    """Paths of storage start at the folder of the configuration file, in any working directory."""
    storage = load(tenant()).tenants["acme"].storage
    assert storage.database_file == tmp_path / "acme.db"
    assert storage.facts_path == tmp_path / "acme.facts"


def test_every_mistake_is_named_at_once(problems: Problems, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mistakes of different kinds and sections are reported together, with their paths."""
    monkeypatch.delenv("CHARGEBACK_TEST_UNSET", raising=False)
    found = problems(
        """
        featuers: {}
        logging: {level: loud}
        api: {port: 70000, request_timeout_seconds: 301}
        tenants:
          acme:
            ecosystem: confluent_cloud
            tenant_id: acme
            lookback_days: 5
            lookbak: 1
            storage: {connection_string: "sqlite:///acme.db"}
            plugin_settings:
              ccloud_api: {key: KEY, secret: "${CHARGEBACK_TEST_UNSET}"}
              metrics: {url: "http://localhost:9090", auth_type: basic}
          beta:
            ecosystem: confluent_clod
            tenant_id: beta
            storage: {connection_string: "sqlite+pysqlite:///./x/../acme.db"}
        """
    )
    for path, words in {
        "featuers": "did you mean features?",
        "logging.level": "should be one of 'DEBUG', 'INFO'",
        "api.port": "at most 65535",
        "api.request_timeout_seconds": "at most 300",
        "tenants.acme.lookback_days": "lookback_days (5) must be greater than cutoff_days (5)",
        "tenants.acme.lookbak": "did you mean lookback_days?",
        "tenants.acme.plugin_settings.ccloud_api.secret": "environment variable CHARGEBACK_TEST_UNSET is not set",
        "tenants.acme.plugin_settings.metrics": "username and password required for basic authentication",
        "tenants.beta.ecosystem": "did you mean confluent_cloud?",
        "tenants.beta.storage.connection_string": "tenants acme and beta share a storage connection",
    }.items():
        assert any(each.startswith(f"{path}: ") and words in each for each in found), (path, found)
    assert len(found) == 10


def test_a_problem_names_its_line(problems: Problems) -> None:
    """A problem has its line number."""
    assert problems(tenant(cutoff_days="31"))[0].endswith("(line 7)")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("tenants: [", "line 1, column 11: not YAML"),
        ("tenants: *secret-word", "undefined alias; quote a string that begins with *"),
        ("tenants: {acme: ${NAME}}", 'write "${NAME}" in quotes'),
        ("", "`tenants` is the one that is required"),
        ("- a\n", "should be a mapping of keys"),
        ("tenants: {}\n", "at least one tenant"),
        ("tenants: {acme: 5}\n", "tenants.acme: should be a mapping of keys"),
        ("tenants: {a/b: {}}\n", "a tenant's name consists of"),
        ("plugins_path: nowhere\ntenants: {}\n", "plugins_path: should be an existing folder"),
    ],
)
def test_a_file_that_cannot_be_read(problems: Problems, text: str, words: str) -> None:
    """Problems of syntax and structure are reported with their position, without quoting the file."""
    found = "\n".join(problems(text))
    assert words in found
    assert "secret-word" not in found


@pytest.mark.parametrize("name", ["nothing.yaml", "."])
def test_a_file_that_is_not_there(tmp_path: Path, name: str) -> None:
    """A missing file and a folder have different messages."""
    with pytest.raises(ConfigurationError, match=r"does not exist|is a folder"):
        load_configuration(tmp_path / name)


def test_a_file_in_another_encoding(tmp_path: Path) -> None:
    """A file that is not UTF-8 is a problem."""
    (tmp_path / "latin.yaml").write_bytes("tenants: ü".encode("latin-1"))
    with pytest.raises(ConfigurationError, match="not UTF-8"):
        load_configuration(tmp_path / "latin.yaml")


def test_values_never_show(problems: Problems, monkeypatch: pytest.MonkeyPatch) -> None:
    """A secret under a wrong key is not shown in any message."""
    monkeypatch.setenv("CHARGEBACK_TEST_SECRET", "hunter2-hunter2")
    secret = '"${CHARGEBACK_TEST_SECRET}"'
    found = "\n".join(
        problems(
            f"""
            logging: {{level: {secret}, format: {secret}}}
            api: {{port: {secret}, enable_cors: {secret}, cors_origins: {secret}}}
            features: {secret}
            plugins_path: {secret}
            tenants:
              acme:
                ecosystem: {secret}
                tenant_id: acme
                currency: {secret}
                lookback_days: {secret}
                storage: {{connection_string: {secret}}}
              beta:
                ecosystem: confluent_cloud
                tenant_id: beta
                storage: {{connection_string: "mysql://me:hunter2-hunter2@host/x"}}
                plugin_settings:
                  ccloud_api: {{key: a b, secret: x, url: {secret}}}
                  metrics: {{url: {secret}, type: {secret}}}
                  allocator_params: {{kafka_cku_usage_ratio: {secret}}}
                  allocation_policies: {{X: {{portions: [{{share: {secret}, try: [{secret}]}}]}}}}
            """
        )
    )
    assert "hunter2" not in found
    assert found.count("\n") >= 15


def test_reprs_and_dumps_show_no_secret(load: Load) -> None:
    """The repr and the dump of a configuration, and of any part of it, hide every secret."""
    configuration = load(tenant(storage='{connection_string: "postgresql://me:pass-word@db/x", facts_path: f}'))
    acme = configuration.tenants["acme"]
    texts = f"{configuration!r} {acme} {acme.plugin_settings!r} {acme.settings.model_dump()} {acme.storage}"
    assert "top-secret-1" not in texts
    assert "pass-word" not in texts
    assert {"top-secret-1", "pass-word"} <= configuration.secrets()


def test_exact_numbers_are_quoted(problems: Problems) -> None:
    """A ratio without quotes is refused, because it would be read as a binary floating-point number."""
    text = tenant(plugin_settings=f"{{{CLOUD}, allocator_params: {{kafka_cku_usage_ratio: 0.7}}}}")
    assert "kafka_cku_usage_ratio: quote the number" in problems(text)[0]


def test_dotenv_beside_the_file(load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Variables are read from `.env` next to the file; the environment has priority."""
    (tmp_path / ".env").write_text("CB_ONE=from-file\nCB_TWO='a $b ${c}'\n", encoding="utf-8")
    monkeypatch.setenv("CB_ONE", "from-environment")
    monkeypatch.delenv("CB_TWO", raising=False)
    settings = load(tenant(tenant_id="${CB_ONE} ${CB_TWO}", currency="${CB_THREE:-EUR}")).tenants["acme"].settings
    assert settings.tenant_id == "from-environment a $b ${c}"
    assert settings.currency == "EUR"
    assert "CB_TWO" not in os.environ


def test_an_unset_variable_is_one_problem(problems: Problems) -> None:
    """Missing variables cause no further problems."""
    text = tenant(
        plugin_settings='{ccloud_api: {key: K, secret: S}, metrics: {url: "${CB_NO_1}", auth_type: basic, '
        'username: "${CB_NO_2}", password: "${CB_NO_3}"}}',
        lookback_days="${CB_NO_4}",
    )
    found = problems(text)
    assert len(found) == 4
    assert all("required environment variable CB_NO_" in each for each in found)


def test_invalid_topic_settings_do_not_stop_a_tenant(load: Load) -> None:
    """A mistake under topic_attribution disables topics with a reason, but not the tenant."""
    acme = load(tenant(plugin_settings=f"{{{CLOUD}, topic_attribution: {{enabled: true}}}}")).tenants["acme"]
    assert acme.topic_status is TopicStatus.CONFIG_ERROR
    assert "metrics" in str(acme.topic_error)


def test_valid_topic_settings(load: Load) -> None:
    """Topic attribution with a metrics source is enabled."""
    settings = f"{{{CLOUD}, metrics: {{url: 'http://localhost:9090'}}, topic_attribution: {{enabled: true}}}}"
    acme = load(tenant(plugin_settings=settings)).tenants["acme"]
    assert (acme.topic_status, acme.topic_error) == (TopicStatus.ENABLED, None)


PLUGIN = """
from chargeback.allocation.policies import PolicyCatalogue
from chargeback.ecosystems.contract import Capabilities
from chargeback.ecosystems.settings import PluginSettings

class TinySettings(PluginSettings):
    colour: str

class Tiny:
    name = "tiny"
    capabilities = Capabilities()
    settings_model = TinySettings
    catalogue = PolicyCatalogue({}, {})
    def tenant_catalogue(self, settings): return self.catalogue
    def open(self, context, settings): raise ValueError

ecosystem = Tiny()
"""


@pytest.fixture
def plugins(tmp_path: Path) -> Path:
    """A folder with an ecosystem, ``tiny``, and one that cannot be imported, ``broken``."""
    folder = tmp_path / "plugins"
    folder.mkdir()
    (folder / "tiny.py").write_text(PLUGIN, encoding="utf-8")
    (folder / "broken.py").write_text("import no_such_module_anywhere", encoding="utf-8")
    return folder


@pytest.mark.usefixtures("plugins")
def test_a_dropped_plugin(load: Load, problems: Problems) -> None:
    """An ecosystem from plugins_path works like a built-in one, and its settings are checked."""
    tiny = "plugins_path: plugins\n" + tenant(ecosystem="tiny", plugin_settings="{colour: blue}")
    assert load(tiny).tenants["acme"].ecosystem.name == "tiny"
    assert problems(tiny.replace("colour", "color"))[-1].startswith(
        "tenants.acme.plugin_settings.color: unknown key; did you mean colour?"
    )
    broken = "plugins_path: plugins\n" + tenant(ecosystem="broken")
    assert "this ecosystem could not be imported" in problems(broken)[0]


PATHS = """
from pathlib import Path
from chargeback.ecosystems.settings import LocalPath, PluginSettings, Settings

class Inner(Settings):
    folders: list[Path] = [Path("inner/default")]

class PathSettings(PluginSettings):
    invoices: LocalPath
    plain: Path
    inner: Inner = Inner()
    missing: LocalPath | None = None
    standard: Path = Path("standard")
    text: str = "text"
"""


@pytest.fixture
def paths(plugins: Path) -> str:
    """A configuration of an ecosystem with paths of every kind."""
    source = PLUGIN.replace("settings_model = TinySettings", "settings_model = PathSettings")
    named = source.replace('"tiny"', '"paths"')
    (plugins / "disk.py").write_text(f"{PATHS}\n{named}", encoding="utf-8")
    settings = "{invoices: in, plain: ../plain, inner: {folders: [a, /b]}}"
    return "plugins_path: plugins\n" + tenant(ecosystem="paths", plugin_settings=settings)


def found_paths(settings: Any) -> list[Path]:
    """Return the paths of loaded settings."""
    return [settings.invoices, settings.plain, *settings.inner.folders, settings.standard]


def test_paths_of_a_plugin_start_at_the_file(
    load: Load, paths: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This applies to every type of path, at any depth, in any working directory, and after pickling."""
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    expected = [tmp_path / "in", tmp_path.parent / "plain", tmp_path / "a", Path("/b"), tmp_path / "standard"]
    acme = load(paths).tenants["acme"]
    assert found_paths(acme.plugin_settings) == expected
    assert found_paths(pickle.loads(pickle.dumps(acme)).plugin_settings) == expected


def test_an_empty_path_is_a_mistake(problems: Problems, paths: str) -> None:
    """An empty path would be the folder of the file, and is refused."""
    assert problems(paths.replace("invoices: in", "invoices: ''"))[0].startswith(
        "tenants.acme.plugin_settings.invoices: should be a path"
    )


def test_a_plugin_whose_settings_fail(problems: Problems, plugins: Path) -> None:
    """If a plugin's validator raises an exception other than ValueError, it is a problem and not a traceback."""
    validator = "    @model_validator(mode='after')\n    def fail(self): return 1 / 0"
    own = PLUGIN.replace("    colour: str", f"    colour: str\n{validator}").replace('"tiny"', '"failing"')
    (plugins / "failing.py").write_text(f"from pydantic import model_validator\n{own}", encoding="utf-8")
    text = "plugins_path: plugins\n" + tenant(ecosystem="failing", plugin_settings="{colour: red}")
    assert problems(text)[0].startswith(
        "tenants.acme.plugin_settings: plugin failing: settings_model raised ZeroDivisionError: division by zero"
    )


@pytest.mark.usefixtures("plugins")
def test_topics_where_there_are_none(load: Load) -> None:
    """Enabled topic settings for an ecosystem without topics are a config_error; disabled ones are accepted."""
    text = "plugins_path: plugins\n" + tenant(
        ecosystem="tiny", plugin_settings="{colour: blue, topic_attribution: {enabled: true}}"
    )
    acme = load(text).tenants["acme"]
    assert (acme.topic_status, acme.topic_error) == (
        TopicStatus.CONFIG_ERROR,
        "the ecosystem tiny has no topic attribution",
    )
    assert load(text.replace("true", "false")).tenants["acme"].topic_status is TopicStatus.DISABLED


@pytest.mark.usefixtures("process")
@pytest.mark.usefixtures("plugins")
def test_a_plugin_travels(load: Load, tmp_path: Path) -> None:
    """A pickled tenant of a plugin can be loaded in a process that has not imported the plugin."""
    acme = load("plugins_path: plugins\n" + tenant(ecosystem="tiny", plugin_settings="{colour: blue}")).tenants["acme"]
    (tmp_path / "sent").write_bytes(pickle.dumps(acme))
    code = "import pickle, sys; print(pickle.load(open(sys.argv[1], 'rb')).plugin_settings.colour)"
    told = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "sent")], capture_output=True, text=True, check=True
    )
    assert told.stdout == "blue\n"


@pytest.mark.usefixtures("process")
def test_a_configuration_travels(load: Load, tmp_path: Path) -> None:
    """A pickled configuration is the same in another process, including secrets."""
    configuration = load(tenant())
    assert pickle.loads(pickle.dumps(configuration)) == configuration
    (tmp_path / "sent").write_bytes(pickle.dumps(configuration))
    code = (
        "import pickle, sys; c = pickle.load(open(sys.argv[1], 'rb'));"
        "print(c.tenants['acme'].plugin_settings.ccloud_api.secret.get_secret_value())"
    )
    told = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "sent")], capture_output=True, text=True, check=True
    )
    assert told.stdout.strip() == "top-secret-1"


def test_what_drives_costs_is_measured(load: Load, problems: Problems) -> None:
    """A measure that no policy uses is a problem, which lists the available ones."""
    drivers = "{drivers: {KAFKA: bytes_in}}"
    assert load(tenant(anomalies=drivers)).tenants["acme"].settings.anomalies.criteria.drivers == {"KAFKA": "bytes_in"}
    (problem,) = problems(tenant(anomalies="{drivers: {KAFKA: byts_in}}"))
    assert problem.startswith("tenants.acme.anomalies.drivers.KAFKA: no policy uses the measure byts_in; there are ")
    assert "bytes_in" in problem


def test_many_tenants_are_not_compared_pair_by_pair(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many tenants, only those are compared that have something in common; each such pair is a mistake."""
    compared: list[str] = []

    def _shares(one: StorageLocation, other: StorageLocation) -> bool:
        compared.append(f"{one.database_file} {other.database_file}")
        return False

    monkeypatch.setattr(StorageLocation, "shares_database_with", _shares)
    text = "tenants:\n" + "".join(
        f"  t{number}: {{ecosystem: confluent_cloud, tenant_id: t{number}, plugin_settings: {{{CLOUD}}}, "
        f'storage: {{connection_string: "sqlite:///{number}.db", facts_path: {facts}}}}}\n'
        for number, facts in enumerate([*(f"facts/{number}" for number in range(50)), "facts/7/inside"])
    )
    with pytest.raises(ConfigurationError, match="tenants t7 and t50 share a facts_path"):
        load(text)
    assert [each.split("/")[-1] for each in compared] == ["7.db"]
