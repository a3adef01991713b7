"""Credentials stay out of every text."""

from __future__ import annotations

import base64

import pytest

from chargeback.errors import ConfigurationError
from chargeback.sources.credentials import Credentials


def test_basic_header_is_user_and_password_in_base64() -> None:
    """Basic authentication encodes user:password in UTF-8."""
    header = Credentials.basic("key", "größe").header
    assert base64.b64decode(header.removeprefix("Basic ")).decode() == "key:größe"


def test_repr_shows_nothing() -> None:
    """The repr of a credential shows neither user nor secret."""
    shown = repr(Credentials.basic("the-key", "the-secret")) + str(Credentials.bearer("the-token"))
    assert "the-" not in shown


def test_redact_takes_out_the_secret_in_each_form() -> None:
    """The password and the whole header value are removed from a third party's text."""
    credentials = Credentials.basic("user", "s3cret-word")
    token = credentials.header.removeprefix("Basic ")
    assert credentials.redact(f"refused {token}, s3cret-word") == "refused ***, ***"


@pytest.mark.parametrize("bad", ["", "line\nbreak", "tab\tbed"])
def test_what_no_header_can_carry_is_a_configuration_error(bad: str) -> None:
    """A secret with a line break is an error that does not show it."""
    with pytest.raises(ConfigurationError) as caught:
        Credentials.bearer(bad)
    with pytest.raises(ConfigurationError):
        Credentials.basic("user", bad)
    assert not bad or bad not in str(caught.value)


def test_a_bearer_token_outside_ascii_is_a_configuration_error() -> None:
    """A token with characters that HTTP does not allow is an error before any request."""
    with pytest.raises(ConfigurationError):
        Credentials.bearer("tökén")
