"""The ways to send a message: each sends it once, and returns the outcome."""

from __future__ import annotations

import ipaddress
import json
import smtplib
import socket
import ssl
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import format_datetime
from typing import Any, Final
from urllib.parse import urlsplit

from standardwebhooks import Webhook

from chargeback import __version__
from chargeback.config.notifications import (
    AlertmanagerSettings,
    ChatSettings,
    EventSink,
    MailSettings,
    WebhookSettings,
)
from chargeback.notifications.message import Message

#: The limit of one attempt, in seconds: for each of connecting, sending and waiting for a response.
ATTEMPT_SECONDS: Final = 15.0
_GONE: Final = 410
#: How much of a refusing response is kept, in characters.
_QUOTED: Final = 200


@dataclass(frozen=True, slots=True)
class SendResult:
    """The outcome of an attempt: ``error`` is None if the message was delivered; ``is_final`` if retrying is useless;
    ``wait`` is the number of seconds that the receiver wants to pass before a retry."""

    error: str | None = None
    is_final: bool = False
    wait: float = 0.0


class _NotPublicError(Exception):
    """An address that is not one of the public internet."""


def send(sink: EventSink, message: Message, now: datetime) -> SendResult:
    """Send a message once."""
    if isinstance(sink, MailSettings):
        return _mail(sink, message, now)
    return _post(sink, message, now)


def _signed(sink: WebhookSettings, message: Message, now: datetime) -> tuple[bytes, dict[str, str]]:
    """Return the body of a webhook and its headers, as https://www.standardwebhooks.com has them; with two secrets
    there are two signatures."""
    text = json.dumps(message.payload, ensure_ascii=False, separators=(",", ":"))
    at = now.astimezone(UTC)  # the library takes every time for one of UTC
    signatures = [Webhook(each.get_secret_value()).sign(message.id, at, text) for each in sink.secrets]
    return text.encode(), {
        "webhook-id": message.id,
        "webhook-timestamp": str(int(at.timestamp())),
        "webhook-signature": " ".join(signatures),
    }


def _post(sink: WebhookSettings | ChatSettings, message: Message, now: datetime) -> SendResult:
    if isinstance(sink, WebhookSettings):
        content, headers = _signed(sink, message, now)
        return _posted(sink.url, content, headers, allow_private=sink.allow_private)
    content = json.dumps({"text": message.text}).encode()
    return _posted(sink.url.get_secret_value(), content, {}, allow_private=sink.allow_private)


def send_alerts(sink: AlertmanagerSettings, alerts: Sequence[Mapping[str, Any]]) -> SendResult:
    """Send the conditions that hold to an Alertmanager."""
    url = f"{sink.url.rstrip('/')}/api/v2/alerts"
    headers = {} if sink.token is None else {"Authorization": f"Bearer {sink.token.get_secret_value()}"}
    return _posted(url, json.dumps(alerts).encode(), headers, allow_private=sink.allow_private)


def _posted(url: str, content: bytes, headers: dict[str, str], *, allow_private: bool) -> SendResult:
    import httpx  # a service that sends nothing does without it

    headers = headers | {"Content-Type": "application/json", "User-Agent": f"chargeback/{__version__}"}
    try:
        status, text, wait = _exchange(url, content, headers, allow_private=allow_private)
    except _NotPublicError as error:
        return SendResult(f"{error} (allow_private)")
    except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
        return SendResult(_words(error))
    if 200 <= status < 300:
        return SendResult()
    moved = " (redirects are not followed)" if 300 <= status < 400 else ""
    said = f": {text[:_QUOTED].strip()}" if text.strip() else ""
    return SendResult(f"the receiver answered {status}{moved}{said}", is_final=status == _GONE, wait=wait)


def _exchange(url: str, content: bytes, headers: dict[str, str], *, allow_private: bool) -> tuple[int, str, float]:
    """Return the status of the response, the beginning of its text, and how long to wait before the next attempt."""
    import httpx

    extensions: dict[str, str] = {}
    if not allow_private:
        # What is connected to is the address that was checked, so that a name cannot lead elsewhere a moment later.
        parts = urlsplit(url)
        host = parts.hostname or ""
        address = _public_address(host, parts.port or 443)
        headers = headers | {"Host": parts.netloc}
        extensions = {"sni_hostname": host}
        url = str(httpx.URL(url).copy_with(host=address))
    limits = httpx.Timeout(ATTEMPT_SECONDS)
    # A proxy would connect on our behalf, to any address that it resolves.
    with (
        httpx.Client(timeout=limits, follow_redirects=False, trust_env=allow_private) as client,
        client.stream("POST", url, content=content, headers=headers, extensions=extensions) as answer,
    ):
        text, ends = b"", time.monotonic() + ATTEMPT_SECONDS
        for chunk in answer.iter_raw():
            text += chunk
            if len(text) >= _QUOTED or time.monotonic() > ends:
                break
        asked = answer.headers.get("retry-after", "")
        return answer.status_code, text.decode("utf-8", "replace"), float(asked) if asked.isdecimal() else 0.0


def _public_address(host: str, port: int) -> str:
    found = [str(each[4][0]) for each in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
    private = [each for each in found if not ipaddress.ip_address(each.partition("%")[0]).is_global]
    if private:
        raise _NotPublicError(f"{host} is {private[0]}, which is not an address of the public internet")
    return found[0]


def _mail(sink: MailSettings, message: Message, now: datetime) -> SendResult:
    mail = EmailMessage()
    mail["Subject"] = message.sentence
    mail["From"] = sink.sender
    mail["To"] = ", ".join(sink.to)
    mail["Date"] = format_datetime(now)
    # The same for every attempt: mail programs show a repetition once.
    mail["Message-ID"] = f"<{message.id}@{sink.sender.rpartition('@')[2]}>"
    mail["Auto-Submitted"] = "auto-generated"
    mail.set_content(f"{message.text}\n")
    context = ssl.create_default_context()
    try:
        if sink.security == "tls":
            server: smtplib.SMTP = smtplib.SMTP_SSL(sink.host, sink.port, timeout=ATTEMPT_SECONDS, context=context)
        else:
            server = smtplib.SMTP(sink.host, sink.port, timeout=ATTEMPT_SECONDS)
        with server:
            if sink.security == "starttls":
                server.starttls(context=context)
            if sink.username is not None and sink.password is not None:
                server.login(sink.username, sink.password.get_secret_value())
            refused = server.send_message(mail)
    except (smtplib.SMTPException, OSError) as error:
        return SendResult(_words(error))
    if refused:
        return SendResult(f"the mail server refused {', '.join(sorted(refused))}")
    return SendResult()


def _words(error: Exception) -> str:
    return f"it cannot be reached: {str(error) or type(error).__name__}"
