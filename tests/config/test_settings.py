"""The bounds of single keys."""

from __future__ import annotations

import pytest

from tests.config.conftest import Load, Problems, tenant


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
        ("tenant_execution_timeout_seconds", "-1", "at least 0"),
        ("topic_attribution_retry_limit", "0", "at least 1"),
        ("zero_gather_deletion_threshold", "0", "-1 (an empty listing never deletes)"),
        ("metrics_prefetch_workers", "21", "at most 20"),
        ("tenant_id", "12", "should be a text; put a number"),
        ("storage", "{}", "this key is required"),
        ("lookback_days", '"many"', "should be a whole number"),
    ],
)
def test_bounds_of_a_tenant(problems: Problems, key: str, value: str, words: str) -> None:
    """A value outside its bounds is refused with the bound."""
    assert words in "\n".join(problems(tenant(**{key: value})))


@pytest.mark.parametrize(
    ("section", "words"),
    [
        ("api: {port: 0}", "api.port: should be at least 1"),
        ("api: {request_timeout_seconds: 0}", "at least 1"),
        ("api: {cors_origins: x}", "should be a list"),
        ("features: {max_parallel_tenants: 65}", "at most 64"),
        ("features: {worker_port: 70000}", "at most 65535"),
        ('logging: {format: "%(nonsense)s"}', "should be the word json, or a format"),
        ("logging: {format: plain}", "should be the word json, or a format"),
        ("logging: {per_module_levels: {httpx: quiet}}", "logging.per_module_levels.httpx: should be one of"),
    ],
)
def test_bounds_of_sections(problems: Problems, section: str, words: str) -> None:
    """The service's own sections have bounds too."""
    assert words in "\n".join(problems(f"{section}\n{tenant()}"))


def test_numbers_from_the_environment(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers and booleans may come from variables, and levels in small letters."""
    monkeypatch.setenv("CB_PORT", "9000")
    monkeypatch.setenv("CB_CORS", "true")
    text = 'logging: {level: debug}\napi: {port: "${CB_PORT}", enable_cors: "${CB_CORS}"}\n' + tenant()
    configuration = load(text)
    assert (configuration.api.port, configuration.api.enable_cors) == (9000, True)
    assert configuration.logging.level == "DEBUG"
