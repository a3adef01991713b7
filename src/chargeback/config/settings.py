"""The keys of the configuration file, except those under ``plugin_settings``, which belong to the ecosystems."""

import logging
import re
from decimal import Decimal
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, model_validator

from chargeback.config.access import AccessSettings
from chargeback.config.closing import ClosingSettings
from chargeback.config.compute import LOCAL, ComputeSettings
from chargeback.config.contracts import ContractSettings, check_distinct
from chargeback.config.journal import JournalSettings
from chargeback.config.notifications import MaintenanceSettings, SinkName, SinkSettings
from chargeback.config.shadows import ShadowName, ShadowSettings
from chargeback.ecosystems.focus import BillInFocus, FocusSettings
from chargeback.model.anomalies import Criteria, Floors
from chargeback.model.currency import CURRENCY_CODES, Rates, checked_rate, parse_month
from chargeback.settings import MAX_WAIT_SECONDS, ExactDecimal, LocalPath, ObjectStoreSettings, Settings, Whole

DEFAULT_LOG_FORMAT = "%(asctime)s %(levelname)-8s %(name)s: %(message)s"

#: The context of a log record; a format may use these names, too.
LOG_CONTEXT = ("tenant", "run", "date")

#: ``logging.format`` for one JSON object per line.
JSON_FORMAT = "json"


Port = Annotated[Whole, Field(ge=1, le=65535)]


def _upper(value: object) -> object:
    return value.upper() if isinstance(value, str) else value


Level = Annotated[Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"], BeforeValidator(_upper)]


def _log_format(value: str) -> str:
    if value == JSON_FORMAT:
        return value
    record = logging.LogRecord("chargeback", logging.INFO, "", 0, "a message", None, None)
    record.__dict__.update(dict.fromkeys(LOG_CONTEXT, ""))
    try:
        logging.Formatter(value, validate=True).format(record)
    except (ValueError, TypeError):
        raise ValueError("should be the word json, or a format such as %(asctime)s %(message)s") from None
    return value


class LoggingSettings(Settings):
    """How the service logs: to standard error, as text or as JSON lines."""

    level: Level = "INFO"
    format: Annotated[str, AfterValidator(_log_format)] = DEFAULT_LOG_FORMAT
    per_module_levels: dict[str, Level] = Field(default_factory=dict)


_SIZE = re.compile(r"(\d+(?:\.\d+)?) ?([KMGT])(i?)B", re.IGNORECASE)
_SMALLEST_SIZE = 64 * 2**20


def _bytes_of(value: object) -> int:
    """Return the bytes of a size: ``2GB`` is 2 × 1000³, ``512MiB`` is 512 × 1024²."""
    found = _SIZE.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None:
        raise ValueError("should be a size with its unit, such as 2GB or 512MiB")
    number, unit, binary = found.groups()
    size = int(Decimal(number) * (1024 if binary else 1000) ** ("KMGT".index(unit.upper()) + 1))
    if size < _SMALLEST_SIZE:
        raise ValueError("should be at least 64MiB")
    return size


#: A size in memory or on a disk, in bytes.
ByteSize = Annotated[int, BeforeValidator(_bytes_of), Field(ge=_SMALLEST_SIZE, le=2**50)]


class CacheSettings(Settings):
    """Where this machine keeps copies of files that are in object storage, and how many bytes of them."""

    path: LocalPath | None = None
    max_bytes: ByteSize = 10 * 1000**3


class FeatureSettings(Settings):
    """What the worker does by itself, how much of it at the same time, and where. Seconds; tenants."""

    enable_periodic_refresh: bool = True
    refresh_interval: Annotated[Whole, Field(ge=1, le=MAX_WAIT_SECONDS)] = 1800
    max_parallel_tenants: Annotated[Whole, Field(ge=1, le=64)] = 4
    worker_port: Port | None = None
    cache: CacheSettings = CacheSettings()
    compute: ComputeSettings = LOCAL


def _host_name(value: str) -> str:
    if not re.fullmatch(r"\*|(\*\.)?\w([\w.-]*\w)?|[0-9a-f]*:[0-9a-f]*:[0-9a-f:.]*", value, re.ASCII | re.IGNORECASE):
        raise ValueError("should be a host name without scheme and port, such as costs.example.com or *.example.com")
    return value


def _path_prefix(value: str) -> str:
    if not re.fullmatch(r"(/[A-Za-z0-9_~-][A-Za-z0-9_.~-]*)+", value):
        raise ValueError("should be a path that begins with a slash and ends without one, such as /apps/chargeback")
    return value


def _address(value: str) -> str:
    if not re.fullmatch(r"https?://[^\s/?#@]+(/[^\s?#]*)?", value):
        raise ValueError("should be an address such as https://chargeback.example.com/ui")
    return value


class ApiSettings(Settings):
    """The API: its address and host names, the path below which a proxy serves it, the time limit of a request
    (seconds), whether it serves the browser page, where people reach that, and the limits of its query engine."""

    host: Annotated[str, Field(min_length=1)] = "127.0.0.1"
    port: Port = 8080
    allowed_hosts: list[Annotated[str, AfterValidator(_host_name)]] = Field(default_factory=list)
    path_prefix: Annotated[str, AfterValidator(_path_prefix)] | None = None
    enable_cors: bool = False
    cors_origins: list[str] = Field(default_factory=list)
    request_timeout_seconds: Annotated[Whole, Field(ge=1, le=300)] = 30
    page: bool = True
    page_url: Annotated[str, AfterValidator(_address)] | None = None
    query_memory: ByteSize | None = None
    query_threads: Annotated[Whole, Field(ge=1, le=256)] | None = None


class McpSettings(Settings):
    """Whether `/mcp` serves assistants, and the address of the page, for links in results."""

    enabled: bool = False
    page_url: Annotated[str, AfterValidator(_address)] | None = None


class StorageSettings(Settings):
    """The location of a tenant's data, as written; :mod:`chargeback.config.storage` normalises it.

    The whole connection string is a secret, because it may hold a password.
    """

    connection_string: SecretStr
    facts_path: Annotated[str, Field(min_length=1)] | None = None
    database_schema: Annotated[str, Field(pattern=r"^[a-z_][a-z0-9_]{0,62}$")] | None = None
    object_store: ObjectStoreSettings = ObjectStoreSettings()
    publish: Literal["delta", "none"] = "delta"


def _currency(value: str) -> str:
    if not re.fullmatch("[A-Z]{3}", value):
        raise ValueError("should be a currency code of three capital letters, such as EUR")
    return value


def _iso_currency(value: str) -> str:
    if value not in CURRENCY_CODES:
        raise ValueError("should be a currency code of ISO 4217, such as EUR")
    return value


def _month(value: str) -> str:
    parse_month(value)
    return value


#: One rate per month: month → units of the currency for one unit of the bill's.
MonthlyRates = dict[
    Annotated[str, AfterValidator(_month)],
    Annotated[ExactDecimal, AfterValidator(checked_rate)],
]


def _not_zero(value: int) -> int:
    if value == 0:
        raise ValueError("should be -1 (an empty listing never deletes) or at least 1 (after that many in a row)")
    return value


class AdditionalBillSettings(Settings):
    """Another bill of a tenant. ``rates`` are units of the tenant's currency for one unit of the bill's, by month."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,31}$")]
    ecosystem: Annotated[str, Field(min_length=1)]
    currency: Annotated[str, AfterValidator(_currency)] | None = None
    rates: MonthlyRates = Field(default_factory=dict)
    focus: BillInFocus = BillInFocus()
    plugin_settings: dict[str, Any] = Field(default_factory=dict, repr=False, exclude=True)


# How documents can write numbers, days, and the currency of an amount: most choices are examples of themselves.
Numbers = Literal["1,234.56", "1.234,56", "1 234,56"]
Dates = Literal["14 November 2026", "14.11.2026", "2026-11-14"]
CurrencyPlace = Literal["after", "before"]


class FormatSettings(Settings):
    """How pages and PDF files write numbers, days, and the currency of an amount."""

    numbers: Numbers = "1,234.56"
    dates: Dates = "14 November 2026"
    currency: CurrencyPlace = "after"


class StatementSettings(Settings):
    """Who issues statements, the lines of a name and an address, and how they are written."""

    issuer: Annotated[str, Field(max_length=1000)] | None = None
    format: FormatSettings = FormatSettings()


class AnomalySettings(Settings):
    """Which anomalies are reported: by how much a day has to differ, in the currency and in percent of the usual cost;
    the cost category whose values are examined; the measures that drive the costs of product groups; and how many are
    reported in a week."""

    enabled: bool = True
    min_amount: Annotated[ExactDecimal, Field(ge=0)] = Decimal(1)
    min_percent: Annotated[ExactDecimal, Field(ge=0)] = Decimal(20)
    cost_category: Annotated[str, Field(min_length=1)] | None = None
    drivers: dict[Annotated[str, Field(min_length=1)], Annotated[str, Field(min_length=1)]] = Field(
        default_factory=dict
    )
    most_a_week: Annotated[Whole, Field(ge=0, le=1000)] = 5

    @property
    def criteria(self) -> Criteria:
        """By what costs are judged."""
        floors = Floors(float(self.min_amount), float(self.min_percent) / 100)
        return Criteria(floors, self.cost_category, self.drivers)


class TenantSettings(Settings):
    """One tenant. ``plugin_settings`` are kept as written; the ecosystem's own model validates them."""

    ecosystem: Annotated[str, Field(min_length=1)]
    tenant_id: Annotated[str, Field(min_length=1, max_length=200)]
    lookback_days: Annotated[Whole, Field(ge=1, le=364)] = 200
    cutoff_days: Annotated[Whole, Field(ge=1, le=30)] = 5
    retention_days: Annotated[Whole, Field(ge=1, le=730)] = 250
    history_days: Annotated[Whole, Field(ge=0, le=730)] | None = None
    gather_failure_threshold: Annotated[Whole, Field(ge=1, le=1000)] = 5
    allocation_retry_limit: Annotated[Whole, Field(ge=1, le=10)] = 3
    currency: Annotated[str, AfterValidator(_currency)] = "USD"
    focus: FocusSettings = FocusSettings()
    journal: JournalSettings = JournalSettings()
    closing: ClosingSettings = ClosingSettings()
    statements: StatementSettings = StatementSettings()
    anomalies: AnomalySettings = AnomalySettings()
    contracts: tuple[ContractSettings, ...] = ()
    notifications: dict[SinkName, SinkSettings] = Field(default_factory=dict, repr=False)
    maintenance: tuple[MaintenanceSettings, ...] = ()
    shadow_policies: dict[ShadowName, ShadowSettings] = Field(default_factory=dict)
    currencies: dict[Annotated[str, AfterValidator(_iso_currency)], MonthlyRates] = Field(default_factory=dict)
    tenant_execution_timeout_seconds: Annotated[Whole, Field(ge=0, le=MAX_WAIT_SECONDS)] = 3600
    topic_attribution_retry_limit: Annotated[Whole, Field(ge=1, le=10)] = 3
    zero_gather_deletion_threshold: Annotated[Whole, Field(ge=-1, le=1000), AfterValidator(_not_zero)] = -1
    metrics_prefetch_workers: Annotated[Whole, Field(ge=1, le=20)] = 4
    additional_bills: tuple[AdditionalBillSettings, ...] = ()
    storage: StorageSettings
    plugin_settings: dict[str, Any] = Field(default_factory=dict, repr=False, exclude=True)

    @model_validator(mode="after")
    def _other_currencies(self) -> Self:
        if self.currency in self.currencies:
            raise ValueError(f"currencies should not contain {self.currency}, the currency of the bill")
        return self

    @model_validator(mode="after")
    def _bills_differ(self) -> Self:
        names = [bill.name for bill in self.additional_bills]
        if len(names) != len(set(names)):
            raise ValueError("two additional_bills have the same name")
        for bill in self.additional_bills:
            if bill.currency not in (None, self.currency) and not bill.rates:
                raise ValueError(
                    f"the additional bill {bill.name} is in {bill.currency}: give its rates, of {self.currency} for one"
                    f" {bill.currency}, by month"
                )
        return self

    @model_validator(mode="after")
    def _contracts_differ(self) -> Self:
        check_distinct("contracts", [each.id for each in self.contracts])
        return self

    @property
    def rates(self) -> dict[str, Rates]:
        """Return the rates of the other currencies, by the first day of the month."""
        return {
            code: {parse_month(month): rate for month, rate in rates.items()} for code, rates in self.currencies.items()
        }


class FileSettings(Settings):
    """The whole file."""

    logging: LoggingSettings = LoggingSettings()
    features: FeatureSettings = FeatureSettings()
    api: ApiSettings = ApiSettings()
    access: AccessSettings = AccessSettings()
    mcp: McpSettings = McpSettings()
    plugins_path: Annotated[str, Field(min_length=1)] | None = None
    tenants: dict[str, TenantSettings]
