"""Who may see what: the keys under ``access``, and the roles made of them."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from typing import Annotated, Final, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, model_validator

from chargeback.access.caller import Right
from chargeback.access.roles import Role, Roles, names_in
from chargeback.access.scope import RowScope
from chargeback.settings import LocalPath, Settings, Url, is_loopback

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_MIN_SECRET_LENGTH: Final = 16
#: The widest private networks are 10.0.0.0/8 and fc00::/7.
_SHORTEST_PREFIX: Final = {4: 8, 6: 7}


def _network(value: object) -> object:
    if not isinstance(value, str):
        raise ValueError("should be an address or a network, such as 10.0.3.7 or 10.0.3.0/24")  # noqa: TRY004 - pydantic
    try:
        return ipaddress.ip_network(value.strip())
    except ValueError as error:
        hint = "; its address has bits outside the network" if "host bits" in str(error) else ""
        raise ValueError(f"should be an address or a network, such as 10.0.3.7 or 10.0.3.0/24{hint}") from None


def _widest(networks: Sequence[Network]) -> Network | None:
    """Return the widest network, if it is too wide for a proxy, once those that lie side by side are joined."""
    joined: list[Network] = [
        *ipaddress.collapse_addresses(each for each in networks if isinstance(each, ipaddress.IPv4Network)),
        *ipaddress.collapse_addresses(each for each in networks if isinstance(each, ipaddress.IPv6Network)),
    ]
    wide = [each for each in joined if each.prefixlen < _SHORTEST_PREFIX[each.version]]
    return min(wide, key=lambda each: each.prefixlen, default=None)


def _header(value: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9-]+", value):
        raise ValueError("should be the name of a header, such as X-Forwarded-Email")
    return value


def _secret(value: SecretStr) -> SecretStr:
    text = value.get_secret_value()
    if len(text) < _MIN_SECRET_LENGTH or not re.fullmatch(r"[!-~]+", text):
        raise ValueError(
            f"should have at least {_MIN_SECRET_LENGTH} characters, without spaces and accents; `openssl rand -hex 32` "
            "prints a good one"
        )
    return value


def _pattern(value: str) -> str:
    try:
        re.compile(value)
    except re.error as error:
        raise ValueError(f"should be a regular expression: {error}") from None
    return value


def _list_of_one(value: object) -> object:
    return [value] if isinstance(value, str) else value


def _secure(value: str) -> str:
    address = urlsplit(value)
    if address.scheme != "https" and not is_loopback(address.hostname or ""):
        raise ValueError("should begin with https://: who can change the keys on their way can be anybody")
    return value


_Network = Annotated[Network, BeforeValidator(_network)]
_Header = Annotated[str, AfterValidator(_header)]
_Text = Annotated[str, Field(min_length=1)]
_Pattern = Annotated[str, Field(min_length=1), AfterValidator(_pattern)]


class ProxySettings(Settings):
    """An authenticating proxy: how its requests are recognised, and the headers with the user."""

    trusted: list[_Network] = Field(default_factory=list)
    shared_secret: Annotated[SecretStr, AfterValidator(_secret)] | None = None
    user_header: _Header = "X-Forwarded-Email"
    groups_header: _Header | None = "X-Forwarded-Groups"

    @model_validator(mode="after")
    def _is_told_apart(self) -> Self:
        if self.shared_secret is None and not self.trusted:
            raise ValueError(
                "needs `trusted`, the addresses of the proxy, or `shared_secret`: else everybody is the proxy"
            )
        if self.shared_secret is None and (wide := _widest(self.trusted)) is not None:
            every = "every address" if wide.prefixlen == 0 else f"all of {wide}, which is more than any proxy has"
            raise ValueError(f"`trusted` has {every}; name the addresses of the proxy, or set `shared_secret`")
        return self

    def trusts(self, address: str) -> bool:
        """Return whether the headers of a peer with this address may be believed."""
        if not self.trusted:
            return True
        try:
            found = ipaddress.ip_address(address)
        except ValueError:
            return False
        # A socket for both protocols shows IPv4 peers as ::ffff:10.0.3.7.
        peer = getattr(found, "ipv4_mapped", None) or found
        return any(peer in network for network in self.trusted)


class JwtSettings(Settings):
    """Signed tokens: the keys, the issuer, the audience, and the claims that identify the caller."""

    jwks_file: LocalPath | None = None
    jwks_url: Annotated[Url, AfterValidator(_secure)] | None = None
    issuer: _Text
    audience: _Text
    user_claim: _Text = "email"
    groups_claim: _Text = "groups"

    @model_validator(mode="after")
    def _has_keys(self) -> Self:
        if (self.jwks_file is None) == (self.jwks_url is None):
            raise ValueError("needs either `jwks_file` or `jwks_url`, where the keys of the issuer are")
        return self


class RoleSettings(Settings):
    """What some users and groups may do, on some tenants, with some rows."""

    allow: Annotated[list[Right], Field(min_length=1)]
    users: list[_Pattern] = Field(default_factory=list)
    groups: list[_Pattern] = Field(default_factory=list)
    tenants: list[_Text] = Field(default_factory=list)
    scope: dict[str, Annotated[list[_Text], Field(min_length=1), BeforeValidator(_list_of_one)]] | None = None

    @model_validator(mode="after")
    def _is_of_somebody(self) -> Self:
        if not self.users and not self.groups:
            raise ValueError('needs `users` or `groups`; users: [".*"] means everybody')
        return self

    @model_validator(mode="after")
    def _scope_can_be_filled(self) -> Self:
        if self.scope is None:
            return self
        RowScope.of(self.scope)
        used = {name: [names for names in map(names_in, values) if names] for name, values in self.scope.items()}
        variable = [name for name, references in used.items() if references]
        if len(variable) > 1:
            raise ValueError(
                f"only one condition of a scope may have ${{…}}: those of {' and '.join(variable)} together would also "
                "allow what no single group stands for"
            )
        parts = [re.compile(pattern).groupindex.keys() for pattern in self.groups]
        for names in (names for references in used.values() for names in references):
            if not any(names <= each for each in parts):
                first, *more = sorted(names)
                raise ValueError(
                    f"no expression of `groups` has {' and '.join(f'(?P<{name}>…)' for name in (first, *more))}, which "
                    f'${{{first}}} stands for; write one, such as "team-(?P<{first}>.+)"'
                )
        return self

    def role(self, name: str) -> Role:
        """Return the role, called ``name`` in explanations."""
        users, groups = (tuple(map(re.compile, patterns)) for patterns in (self.users, self.groups))
        return Role(name, frozenset(self.allow), users, groups, frozenset(self.tenants), self.scope)


class AccessSettings(Settings):
    """How callers are authenticated, and what they may see."""

    mode: Literal["none", "proxy", "jwt"] = "none"
    allow_anonymous: bool = False
    proxy: ProxySettings | None = None
    jwt: JwtSettings | None = None
    roles: list[RoleSettings] = Field(default_factory=list)

    @model_validator(mode="after")
    def _mode_is_configured(self) -> Self:
        if self.mode != "none" and getattr(self, self.mode) is None:
            raise ValueError(f"mode {self.mode} needs the keys below access.{self.mode}")
        return self

    def finished_roles(self) -> Roles:
        """Return the roles, in the order of the file."""
        return Roles(tuple(each.role(f"roles[{position}]") for position, each in enumerate(self.roles)))
