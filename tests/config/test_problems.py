"""Messages about wrong values."""

from __future__ import annotations

from chargeback.config.document import parse_document
from chargeback.config.problems import hide_values, model_at, suggestion, unknown_key, walk
from chargeback.config.settings import ApiSettings, FileSettings, StorageSettings, TenantSettings


def test_the_nearest_key() -> None:
    """A key that is nearly right gets the right one; one that is not gets none."""
    assert unknown_key("prot", ApiSettings) == "unknown key; did you mean port?"
    assert unknown_key("colour", ApiSettings) == "unknown key"
    assert unknown_key("x", None) == "unknown key"
    assert suggestion("confluentcloud", ["confluent_cloud"]) == "; did you mean confluent_cloud?"


def test_values_are_hidden() -> None:
    """A variable is named instead of its value, here, above and below; a written value is not repeated."""
    document = parse_document("a: {b: '${S}', c: written}\n", {"S": "pass-word"})
    assert hide_values("'pass-word' is wrong", ("a", "b"), document) == "${S} is wrong"
    assert hide_values("pass-word is wrong", ("a",), document) == "${S} is wrong"
    assert hide_values("pass-word is wrong", ("a", "b", "d"), document) == "${S} is wrong"
    assert hide_values("'written' is wrong", ("a", "c"), document) == "the value is wrong"


def test_names_that_are_offered_stay_whole() -> None:
    """A value that is part of a name in the message hides nothing of that name."""
    document = parse_document("a: usag\nb: ${S}\nc: x-${S}-y\n", {"S": "owne"})
    assert hide_values("'usag' is no way; use usage(…)", ("a",), document) == "the value is no way; use usage(…)"
    assert hide_values("usag: there is usage", ("a",), document) == "the value: there is usage"
    assert hide_values("owne is not owner", ("b",), document) == "${S} is not owner"
    # In a longer text it may be part of a secret that a message shows together with its surroundings.
    assert hide_values("x-owne-y, owney", ("c",), document) == "x-${S}-y, ${S}y"


def test_every_key_has_a_path() -> None:
    """Keys of nested models, and of models behind names of one's own, are walked."""
    paths = [path for path, _ in walk(FileSettings)]
    assert "api.request_timeout_seconds" in paths
    assert "tenants.<name>.storage.connection_string" in paths


def test_the_model_of_a_place() -> None:
    """The model behind a place is found through free keys."""
    assert model_at(FileSettings, ("tenants", "acme", "storage")) is StorageSettings
    assert model_at(FileSettings, ("tenants", "acme")) is TenantSettings
    assert model_at(TenantSettings, ("currency",)) is None
