"""The keys under ``access``."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from chargeback.access.caller import Right
from chargeback.config.access import ProxySettings
from tests.config.conftest import Load, Problems, tenant

ROLE = "{groups: [platform], allow: [admin]}"
JWT = "issuer: https://idp.example.com, audience: costs"


def access(text: str, rest: str | None = None) -> str:
    """Return a valid file with this text under ``access``."""
    return f"access: {text}\n{rest or tenant()}"


def test_the_default_is_this_machine_only(load: Load) -> None:
    """Without `access`, callers are not identified, and the service listens on the loopback."""
    configuration = load(tenant())
    assert (configuration.access.mode, configuration.api.host) == ("none", "127.0.0.1")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.7", "costs.internal"])
def test_serving_everybody_is_not_an_accident(load: Load, problems: Problems, host: str) -> None:
    """On other addresses, either callers must be identified or anonymous access must be allowed explicitly."""
    listening = f'api: {{host: "{host}"}}\n{tenant()}'
    (problem,) = problems(listening)
    assert problem.startswith("api.host: other machines could reach the service here")
    assert "access.allow_anonymous: true" in problem
    assert "(line 1)" in problem
    load(access("{allow_anonymous: true}", listening))
    load(access("{mode: proxy, proxy: {trusted: [10.0.3.7]}}", listening))


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.9", "localhost", "::1"])
def test_the_loopback_is_this_machine(load: Load, host: str) -> None:
    """All names of the loopback are accepted."""
    load(f'api: {{host: "{host}"}}\n{tenant()}')


def test_the_whole_example(load: Load) -> None:
    """Roles have the rights, expressions, tenants and scopes of the file; ``${name}`` in a scope is not an environment
    variable."""
    configuration = load(
        access(
            """
  mode: proxy
  proxy: {trusted: [10.0.3.0/24, "fd00::/8"], shared_secret: 0123456789abcdef, groups_header: X-Groups}
  roles:
    - {groups: [platform], allow: [admin]}
    - {groups: ["team-(?P<team>.+)"], allow: [read], tenants: [acme], scope: {"category:cost_center": "${team}"}}
    - {users: [".*@example[.]com"], allow: [read, export], scope: {environment_id: [env-1, env-2]}}
"""
        )
    )
    roles = configuration.access.finished_roles().roles
    assert [role.name for role in roles] == ["roles[0]", "roles[1]", "roles[2]"]
    assert roles[1].tenants == {"acme"}
    assert roles[1].scope == {"category:cost_center": ["${team}"]}
    assert roles[2].allow == {Right.READ, Right.EXPORT}
    assert configuration.secrets() >= {"0123456789abcdef"}
    assert "0123456789abcdef" not in repr(configuration)
    assert pickle.loads(pickle.dumps(configuration)).access == configuration.access


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ("{mode: proxy}", "access: mode proxy needs the keys below access.proxy"),
        ("{mode: jwt}", "access: mode jwt needs the keys below access.jwt"),
        ("{mode: oauth}", "access.mode: should be one of 'none', 'proxy' or 'jwt'"),
        ("{mode: proxy, proxy: {}}", "access.proxy: needs `trusted`, the addresses of the proxy, or `shared_secret`"),
        ("{proxy: {trusted: [0.0.0.0/0]}}", "access.proxy: `trusted` has every address"),
        ('{proxy: {trusted: [10.0.0.0/8, "::/0"]}}', "access.proxy: `trusted` has every address"),
        ("{proxy: {trusted: [0.0.0.0/1, 128.0.0.0/1]}}", "access.proxy: `trusted` has every address"),
        ('{proxy: {trusted: ["8000::/1", "::/2", "4000::/2"]}}', "access.proxy: `trusted` has every address"),
        ("{proxy: {trusted: [10.0.0.7, 0.0.0.0/2, 128.0.0.0/1]}}", "access.proxy: `trusted` has all of 128.0.0.0/1"),
        ("{proxy: {trusted: [10.0.0.0/8, 11.0.0.0/8]}}", "access.proxy: `trusted` has all of 10.0.0.0/7"),
        ('{proxy: {trusted: ["2000::/3"]}}', "access.proxy: `trusted` has all of 2000::/3"),
        ("{proxy: {trusted: [10.0.3.1/24]}}", "access.proxy.trusted[0]: should be an address or a network"),
        ("{proxy: {trusted: [proxy]}}", "access.proxy.trusted[0]: should be an address or a network"),
        ("{proxy: {trusted: [7]}}", "access.proxy.trusted[0]: should be an address or a network"),
        ("{proxy: {shared_secret: short}}", "access.proxy.shared_secret: should have at least 16 characters"),
        ("{proxy: {shared_secret: sixteen or more é}}", "access.proxy.shared_secret: should have at least 16"),
        (
            "{proxy: {trusted: [10.0.3.7], user_header: 'X Y'}}",
            "access.proxy.user_header: should be the name of a header",
        ),
        (f"{{jwt: {{{JWT}}}}}", "access.jwt: needs either `jwks_file` or `jwks_url`"),
        (f"{{jwt: {{{JWT}, jwks_file: f, jwks_url: 'https://x'}}}}", "access.jwt: needs either"),
        (
            f"{{jwt: {{{JWT}, jwks_url: 'http://idp.example.com/keys'}}}}",
            "access.jwt.jwks_url: should begin with https",
        ),
        ("{jwt: {jwks_file: f, issuer: x}}", "access.jwt.audience: this key is required"),
        ("{jwt: {jwks_file: f, audience: x}}", "access.jwt.issuer: this key is required"),
        ("{roles: [{allow: [read]}]}", "access.roles[0]: needs `users` or `groups`"),
        ("{roles: [{groups: [a]}]}", "access.roles[0].allow: this key is required"),
        ("{roles: [{groups: [a], allow: []}]}", "access.roles[0].allow: "),
        ("{roles: [{groups: [a], allow: [write]}]}", "access.roles[0].allow[0]: should be 'read', 'export', "),
        (
            "{roles: [{groups: [a], allow: [read], usres: [b]}]}",
            "access.roles[0].usres: unknown key; did you mean users?",
        ),
        ("{roles: [{groups: ['('], allow: [read]}]}", "access.roles[0].groups[0]: should be a regular expression"),
        (
            "{roles: [{groups: [a], allow: [read], tenants: [acmee]}]}",
            "access.roles[0].tenants[0]: there is no such tenant; did you mean acme?",
        ),
        ("{roles: [{groups: [a], allow: [read], scope: {}}]}", "access.roles[0]: needs at least one condition"),
        ("{roles: [{groups: [a], allow: [read], scope: {'tag:a': []}}]}", "access.roles[0].scope.tag:a: "),
        ("{roles: [{groups: [a], allow: [read], scope: {team: x}}]}", "access.roles[0]: rows cannot be chosen by team"),
        (
            "{roles: [{groups: ['(?P<a>.)(?P<b>.)'], allow: [read], scope: {'tag:a': '${a}', 'tag:b': '${b}'}}]}",
            "access.roles[0]: only one condition of a scope may have ${…}",
        ),
        (
            "{roles: [{groups: ['(?P<a>.)', '(?P<b>.)'], allow: [read], scope: {'tag:a': '${a}${b}'}}]}",
            "access.roles[0]: no expression of `groups` has (?P<a>…) and (?P<b>…)",
        ),
        (
            "{roles: [{users: ['(?P<a>.)'], allow: [read], scope: {'tag:a': '${a}'}}]}",
            "access.roles[0]: no expression of `groups` has (?P<a>…), which ${a} stands for",
        ),
        (
            "{roles: [{groups: [a], allow: [read], scope: {'tag:a': '${a'}}]}",
            "access.roles[0]: `${` needs a name and a `}`",
        ),
    ],
)
def test_what_cannot_be_meant(problems: Problems, written: str, problem: str) -> None:
    """The message says where the mistake is and what to change."""
    (found,) = problems(access(written))
    assert found.startswith(problem)


def test_a_mistake_elsewhere_is_not_blamed_on_the_host(problems: Problems) -> None:
    """If ``access`` is invalid, no further problem is reported about the host."""
    (found,) = problems(access("{mode: prox}", f"api: {{host: 0.0.0.0}}\n{tenant()}"))
    assert found.startswith("access.mode")


def test_the_secret_comes_from_the_environment(load: Load, problems: Problems, monkeypatch: pytest.MonkeyPatch) -> None:
    """Except in scopes, ``${NAME}`` is an environment variable, and no message shows its value."""
    monkeypatch.setenv("PROXY_SECRET", "s" * 40)
    configuration = load(access('{mode: proxy, proxy: {shared_secret: "${PROXY_SECRET}"}}'))
    assert configuration.secrets() >= {"s" * 40}
    monkeypatch.setenv("PROXY_SECRET", "too-short")
    (found,) = problems(access('{mode: proxy, proxy: {shared_secret: "${PROXY_SECRET}"}}'))
    assert "too-short" not in found


def test_the_keys_lie_beside_the_configuration(load: Load, tmp_path: Path) -> None:
    """A relative path starts at the folder of the configuration file."""
    jwt = load(access(f"{{mode: jwt, jwt: {{{JWT}, jwks_file: keys.json}}}}")).access.jwt
    assert jwt is not None
    assert jwt.jwks_file == tmp_path / "keys.json"


@pytest.mark.parametrize(
    ("peer", "trusted"),
    [
        ("10.0.3.7", True),
        ("10.0.4.7", False),
        ("::ffff:10.0.3.7", True),
        ("::ffff:10.0.4.7", False),
        ("fd00::1", True),
        ("fe80::1", False),
        ("", False),
        ("proxy", False),
    ],
)
def test_the_peers_that_are_trusted(peer: str, trusted: bool) -> None:
    """Addresses in one of the networks are trusted, also as IPv4-mapped IPv6 addresses."""
    settings = ProxySettings.model_validate({"trusted": ["10.0.3.0/24", "fd00::/8"]})
    assert settings.trusts(peer) is trusted


def test_with_a_secret_the_address_may_be_any() -> None:
    """If a secret is configured, the proxy may have any address."""
    assert ProxySettings.model_validate({"shared_secret": "x" * 16}).trusts("192.0.2.1")


@pytest.mark.parametrize("trusted", [["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"], ["fc00::/7"]])
def test_private_networks_can_be_trusted(trusted: list[str]) -> None:
    """Private networks may be trusted as a whole, and with a secret all networks."""
    assert ProxySettings.model_validate({"trusted": trusted}).trusted
    assert ProxySettings.model_validate({"trusted": ["0.0.0.0/0"], "shared_secret": "0123456789abcdef"}).trusted
