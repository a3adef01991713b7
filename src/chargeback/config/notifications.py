"""The addresses that notifications are sent to."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Final, Literal, Self

from pydantic import AfterValidator, AwareDatetime, Field, SecretStr, field_validator, model_validator

from chargeback.access.scope import RowScope
from chargeback.settings import Settings, Url

EventKind = Literal[
    "period.ready",
    "period.closed",
    "period.reopened",
    "period.sealed",
    "correction.posted",
    "budget.crossed",
    "budget.cleared",
    "budget.late",
    "anomaly.opened",
    "anomaly.grew",
    "anomaly.resolved",
    "anomaly.withdrawn",
    "shadow.ready",
    "shadow.ended",
    "statement.issued",
    "statement.disputed",
    "invoice.differs",
    "run.failed",
    "tenant.suspended",
    "contract.pace",
    "contract.exhausted",
    "contract.ending",
    "sink.dead",
    "digest.weekly",
]

#: What is mailed by default: each mail costs its reader a minute.
_MAILED: Final[tuple[EventKind, ...]] = (
    *("budget.crossed", "budget.late", "contract.exhausted", "digest.weekly", "invoice.differs", "run.failed"),
    *("sink.dead", "statement.disputed", "statement.issued", "tenant.suspended"),
)

SinkName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,31}$")]
#: The length of a secret that the specification of webhooks requires, in bytes.
_SHORTEST, _LONGEST = 24, 64
_PREFIX: Final = "whsec_"


def _is_secret(value: SecretStr) -> SecretStr:
    written = value.get_secret_value()
    try:
        key = base64.b64decode(written.removeprefix(_PREFIX), validate=True)
    except binascii.Error:
        key = b""
    if not written.startswith(_PREFIX) or not _SHORTEST <= len(key) <= _LONGEST:
        raise ValueError(f"should be {_PREFIX} and the base64 of {_SHORTEST} to {_LONGEST} random bytes")
    return value


class _SinkSettings(Settings):
    """What all sinks have: ``kinds``, the events that are sent to it, all by default; and ``scope``, the rows that it
    owns: it then gets no event about others."""

    kinds: Annotated[list[EventKind], Field(min_length=1)] | None = None
    scope: dict[str, Annotated[list[str], Field(min_length=1)]] | None = None

    @field_validator("scope")
    @classmethod
    def _is_scope(cls, value: dict[str, list[str]] | None) -> dict[str, list[str]] | None:
        if value is not None:
            RowScope.of(value)
        return value

    @property
    def accepted(self) -> Sequence[EventKind] | None:
        """The kinds of events that are sent to it; None for all."""
        return self.kinds

    def accepts(self, kind: str) -> bool:
        """Return whether events of a kind are sent to it."""
        return self.accepted is None or kind in self.accepted


class _PostSettings(_SinkSettings):
    """One that is sent HTTP requests. Addresses of private networks are refused, unless ``allow_private``."""

    allow_private: bool = False


class _AddressSettings(_PostSettings):
    """One whose address is no secret."""

    url: Url

    @model_validator(mode="after")
    def _is_encrypted(self) -> Self:
        if self.url.startswith("http:") and not self.allow_private:
            raise ValueError("the address is not encrypted: use https, or set allow_private in a trusted network")
        return self


class WebhookSettings(_AddressSettings):
    """An address that gets signed JSON. During a change of secrets there are two, and every message is signed with
    both."""

    type: Literal["webhook"]
    secrets: Annotated[
        tuple[Annotated[SecretStr, AfterValidator(_is_secret)], ...], Field(min_length=1, max_length=2, repr=False)
    ]


class ChatSettings(_PostSettings):
    """An incoming webhook of a chat, such as one of Slack, Mattermost or Rocket.Chat: its address is a secret."""

    type: Literal["slack"]
    url: SecretStr

    @model_validator(mode="after")
    def _is_address(self) -> ChatSettings:
        schemes = ("https://", "http://") if self.allow_private else ("https://",)
        if not self.url.get_secret_value().startswith(schemes):
            raise ValueError("url should be the https address of an incoming webhook")
        return self


class AlertmanagerSettings(_AddressSettings):
    """An Alertmanager of Prometheus, version 0.22 or later: it gets the present state again and again, and alerts
    others."""

    type: Literal["alertmanager"]
    token: SecretStr | None = None


class MaintenanceSettings(Settings):
    """When no notifications are sent; what has happened meanwhile is sent afterwards."""

    start: AwareDatetime
    end: AwareDatetime
    reason: Annotated[str, Field(min_length=1, max_length=255)]

    @model_validator(mode="after")
    def _has_length(self) -> Self:
        if self.end <= self.start:
            raise ValueError("end should be after start")
        return self

    def __contains__(self, instant: datetime) -> bool:
        return self.start <= instant < self.end


class MailSettings(_SinkSettings):
    """A mail server, and who gets a mail for each message: by default for what cannot wait, and the week in one. With
    the key of a cost category, ``contacts``, those of the value that a message is about get it instead, if it has
    any."""

    type: Literal["smtp"]
    host: Annotated[str, Field(min_length=1)]
    port: Annotated[int, Field(ge=1, le=65535, strict=True)] = 587
    security: Literal["starttls", "tls", "none"] = "starttls"
    username: Annotated[str, Field(min_length=1)] | None = None
    password: SecretStr | None = None
    sender: Annotated[str, Field(pattern=r"^[^@\s<>]+@[^@\s<>]+$")]
    contacts: Annotated[str, Field(min_length=1)] | None = None
    to: Annotated[list[Annotated[str, Field(pattern=r"^[^@\s<>]+@[^@\s<>]+$")]], Field(min_length=1, max_length=50)]

    @property
    def accepted(self) -> Sequence[EventKind]:
        """The kinds of events that are sent to it."""
        return _MAILED if self.kinds is None else self.kinds

    @model_validator(mode="after")
    def _is_consistent(self) -> MailSettings:
        if (self.username is None) != (self.password is None):
            raise ValueError("username and password belong together: give both, or none")
        if self.password is not None and self.security == "none":
            raise ValueError("a password is not sent without encryption: use security: starttls or tls")
        return self


#: Sinks that get each event once.
EventSink = WebhookSettings | ChatSettings | MailSettings
SinkSettings = Annotated[EventSink | AlertmanagerSettings, Field(discriminator="type")]
