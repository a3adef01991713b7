"""Sending messages to servers that accept them, refuse them, or fail."""

from __future__ import annotations

import ipaddress
import json
import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta, timezone
from email import message_from_string
from email.policy import default
from typing import Any

import httpx
import pytest
from pydantic import ValidationError
from standardwebhooks import Webhook, WebhookVerificationError

from chargeback.config.notifications import ChatSettings, MailSettings, WebhookSettings
from chargeback.notifications import senders
from chargeback.notifications.message import try_message
from chargeback.notifications.senders import SendResult, send
from tests.support.receiver import OTHER_SECRET, SECRET, Answer, Receiver

NOW = datetime.now(UTC)
MESSAGE = try_message("acme", "desk", NOW, "https://costs.example.com/ui")


def hook(url: str, *secrets: str, allow_private: bool = True) -> WebhookSettings:
    """Return the settings of a webhook."""
    return WebhookSettings.model_validate(
        {"type": "webhook", "url": url, "secrets": secrets or (SECRET,), "allow_private": allow_private}
    )


def test_a_webhook_is_signed_with_every_secret() -> None:
    """Each signature can be verified with the receivers' library, in any time zone."""
    with Receiver() as receiver:
        now = datetime.now(timezone(timedelta(hours=9)))
        assert send(hook(receiver.url, SECRET, OTHER_SECRET), MESSAGE, now) == SendResult()
    (received,) = receiver.received
    assert received.headers["webhook-id"] == MESSAGE.id
    assert received.headers["content-type"] == "application/json"
    for secret in (SECRET, OTHER_SECRET):
        assert Webhook(secret).verify(received.body, received.headers) == MESSAGE.payload
    with pytest.raises(WebhookVerificationError):
        Webhook(SECRET).verify(received.body.replace("acme", "evil"), received.headers)


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (Answer(200, text="ok"), SendResult()),
        (Answer(500, text="broken"), SendResult("the receiver answered 500: broken")),
        (Answer(429, {"Retry-After": "120"}), SendResult("the receiver answered 429", wait=120)),
        (Answer(410), SendResult("the receiver answered 410", is_final=True)),
        (
            Answer(302, {"Location": "http://127.0.0.1:1/"}),
            SendResult("the receiver answered 302 (redirects are not followed)"),
        ),
    ],
)
def test_what_a_receiver_answers(answer: Answer, outcome: SendResult) -> None:
    """The response decides whether a message is delivered, retried or given up; redirects are not followed."""
    with Receiver(lambda _received, _before: answer) as receiver:
        assert send(hook(receiver.url), MESSAGE, NOW) == outcome
    assert len(receiver.received) == 1


def test_a_receiver_that_hangs_up_or_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A receiver that closes the connection or hangs is waited for no longer than an attempt takes."""
    monkeypatch.setattr(senders, "ATTEMPT_SECONDS", 0.2)
    for answer in (Answer(None), Answer(seconds=1)):
        with Receiver(lambda _received, _before, answer=answer: answer) as receiver:  # type: ignore[misc]
            outcome = send(hook(receiver.url), MESSAGE, NOW)
        assert outcome.error is not None
        assert outcome.error.startswith("it cannot be reached: ")
        assert not outcome.is_final


@pytest.mark.parametrize("host", ["127.0.0.1", "10.1.2.3", "169.254.169.254", "[::1]", "[fd00::1]", "localhost"])
def test_private_addresses_are_not_connected_to(host: str) -> None:
    """Private addresses are rejected unless they are allowed, to protect the internal network."""
    outcome = send(hook(f"https://{host}/hook", allow_private=False), MESSAGE, NOW)
    assert outcome.error is not None
    assert "not an address of the public internet" in outcome.error


def test_what_was_checked_is_connected_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """The name is resolved once, and the connection goes to the address that was checked."""
    asked: list[str] = []

    def resolve(host: str, *_: object, **__: object) -> list[Any]:
        asked.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("203.0.113.7", 443))]

    def handle(request: httpx.Request) -> httpx.Response:
        assert request.url == "https://203.0.113.7/hook"
        assert request.headers["Host"] == "hooks.example.com"
        assert request.extensions["sni_hostname"] == "hooks.example.com"
        raise httpx.ConnectError("seen")

    client = httpx.Client(transport=httpx.MockTransport(handle))
    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    monkeypatch.setattr(ipaddress.IPv4Address, "is_global", True)
    monkeypatch.setattr(httpx, "Client", lambda **_: client)
    outcome = send(hook("https://hooks.example.com/hook", allow_private=False), MESSAGE, NOW)
    assert outcome.error == "it cannot be reached: seen"
    assert asked == ["hooks.example.com"]


def test_a_chat_gets_the_sentence_and_the_link() -> None:
    """A chat receives the sentence and the link, unsigned: the address is the secret."""
    with Receiver() as receiver:
        settings = {"type": "slack", "url": receiver.url, "allow_private": True}
        assert send(ChatSettings.model_validate(settings), MESSAGE, NOW) == SendResult()
    (received,) = receiver.received
    assert json.loads(received.body) == {"text": f"{MESSAGE.sentence}\n{MESSAGE.link}"}


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"type": "webhook", "url": "https://x.example.com", "secrets": ["short"]}, "whsec_"),
        ({"type": "webhook", "url": "http://x.example.com", "secrets": [SECRET]}, "not encrypted"),
        ({"type": "webhook", "url": "https://x.example.com", "secrets": [SECRET] * 3}, "at most 2"),
    ],
)
def test_settings_that_are_refused(settings: dict[str, Any], said: str) -> None:
    """Invalid settings are rejected without showing the secret."""
    with pytest.raises(ValidationError, match=said) as refused:
        WebhookSettings.model_validate(settings)
    assert SECRET not in str(refused.value)


def mails(*, port: int, **more: object) -> MailSettings:
    """Return the settings of a mail server."""
    settings: dict[str, object] = {"type": "smtp", "host": "127.0.0.1", "port": port, "security": "none"}
    return MailSettings.model_validate(
        settings | {"sender": "costs@example.com", "to": ["ann@example.com", "ben@example.com"]} | more
    )


class _Mailbox(socketserver.StreamRequestHandler):
    """A mail server that accepts one mail and rejects unknown recipients."""

    def handle(self) -> None:
        """Implement the part of SMTP that a mail needs."""
        server: Any = self.server
        self.wfile.write(b"220 tests\r\n")
        while line := self.rfile.readline():
            word = line[:4].upper()
            if word == b"DATA":
                self.wfile.write(b"354 go on\r\n")
                text = b""
                while (part := self.rfile.readline()) != b".\r\n":
                    text += part
                server.mails.append(text.decode())
            elif word == b"RCPT" and any(each in line for each in server.unknown):
                self.wfile.write(b"550 nobody\r\n")
                continue
            elif word == b"QUIT":
                self.wfile.write(b"221 bye\r\n")
                return
            self.wfile.write(b"250 ok\r\n")


@contextmanager
def mailbox(*unknown: bytes) -> Iterator[Any]:
    """Run a mail server; ``mails`` are the received ones."""
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Mailbox) as server:
        found: Any = server
        found.mails, found.unknown = [], unknown
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield server
        server.shutdown()


def test_a_mail() -> None:
    """The sentence is the subject of a mail; its id is the same each time."""
    with mailbox() as server:
        for _ in range(2):
            assert send(mails(port=server.server_address[1]), MESSAGE, NOW) == SendResult()
    first, second = (message_from_string(each, policy=default) for each in server.mails)
    assert first["Subject"] == MESSAGE.sentence
    assert first["To"] == "ann@example.com, ben@example.com"
    assert first["Message-ID"] == second["Message-ID"] == f"<{MESSAGE.id}@example.com>"
    assert MESSAGE.link is not None
    assert MESSAGE.link in first.get_content()


def test_a_mail_that_is_refused() -> None:
    """A mail may be refused for some recipients or all, for lack of encryption, or because no server listens."""
    with mailbox(b"ann@") as server:
        some = send(mails(port=server.server_address[1]), MESSAGE, NOW)
    with mailbox(b"ann@", b"ben@") as server:
        every = send(mails(port=server.server_address[1]), MESSAGE, NOW)
        plain = send(mails(port=server.server_address[1], security="starttls"), MESSAGE, NOW)
    nobody = send(mails(port=1), MESSAGE, NOW)
    assert some.error == "the mail server refused ann@example.com"
    for outcome in (every, plain, nobody):
        assert outcome.error is not None
        assert outcome.error.startswith("it cannot be reached: ")


def test_a_mail_is_for_what_cannot_wait() -> None:
    """By default, mails are sent only for urgent events and the weekly digest."""
    told = [mails(port=25).accepts(kind) for kind in ("digest.weekly", "run.failed", "anomaly.opened", "period.ready")]
    assert told == [True, True, False, False]
    assert mails(port=25, kinds=["anomaly.opened"]).accepts("anomaly.opened")
