"""Settings of connections to sources, and their credentials: never in a repr, a log or an error."""

from __future__ import annotations

import base64
from typing import Literal, Self

from pydantic import SecretStr, model_validator

from chargeback.errors import ConfigProblem, ConfigurationError
from chargeback.settings import Settings, Url

_SHORTEST_SECRET = 4


class Credentials:
    """The ``Authorization`` header of a request; masks its secrets in texts.

    Raises:
        ConfigurationError: a value has characters that are not allowed in a header, such as a line break.
    """

    def __init__(self, scheme: str, token: str, secrets: tuple[str, ...]) -> None:
        self._header = f"{scheme} {token}"
        self._secrets = tuple(sorted({token, *secrets}, key=len, reverse=True))

    @classmethod
    def basic(cls, username: str, password: str) -> Credentials:
        """HTTP Basic (RFC 7617), in UTF-8."""
        _check_printable(username, password)
        token = base64.b64encode(f"{username}:{password}".encode()).decode()
        return cls("Basic", token, (password,))

    @classmethod
    def bearer(cls, token: str) -> Credentials:
        """A bearer token (RFC 6750)."""
        _check_printable(token)
        if not token.isascii():
            raise ConfigurationError([ConfigProblem("", "a bearer token consists of ASCII characters")])
        return cls("Bearer", token, ())

    @property
    def header(self) -> str:
        """The value of the ``Authorization`` header."""
        return self._header

    def redact(self, text: str) -> str:
        """Return ``text`` with the secrets masked, for example if a proxy echoed a header."""
        for secret in self._secrets:
            if len(secret) >= _SHORTEST_SECRET:
                text = text.replace(secret, "***")
        return text

    def __repr__(self) -> str:
        return "Credentials(***)"


def _check_printable(*values: str) -> None:
    if not all(value and value.isprintable() for value in values):
        message = "a credential is empty or contains a line break or a control character"
        raise ConfigurationError([ConfigProblem("", message)])


class MetricsSettings(Settings):
    """A Prometheus-compatible metrics source."""

    type: Literal["prometheus"] = "prometheus"
    url: Url
    auth_type: Literal["none", "basic", "bearer"] = "none"
    username: str | None = None
    password: SecretStr | None = None
    bearer_token: SecretStr | None = None

    @model_validator(mode="after")
    def _credentials(self) -> Self:
        if self.auth_type == "basic" and not (self.username and self.password):
            raise ValueError("username and password required for basic authentication")
        if self.auth_type == "bearer" and not self.bearer_token:
            raise ValueError("bearer_token required for bearer authentication")
        return self
