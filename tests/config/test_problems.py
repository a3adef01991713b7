"""Messages about wrong values."""

from __future__ import annotations

from chargeback.config.document import parse_document
from chargeback.config.problems import hide_values, model_at, suggestion, unknown_key, walk
from chargeback.config.settings import ApiSettings, FileSettings, StorageSettings, TenantSettings


def test_the_nearest_key() -> None:
    """For an unknown key, a similar one is suggested, if there is one."""
    assert unknown_key("prot", ApiSettings) == "unknown key; did you mean port?"
    assert unknown_key("colour", ApiSettings) == "unknown key"
    assert unknown_key("x", None) == "unknown key"
    assert suggestion("confluentcloud", ["confluent_cloud"]) == "; did you mean confluent_cloud?"


def test_values_are_hidden() -> None:
    """A value is replaced by its variable, in messages about its key and those around it; written values are not
    repeated."""
    document = parse_document("a: {b: '${S}', c: written}\n", {"S": "pass-word"})
    assert hide_values("'pass-word' is wrong", ("a", "b"), document) == "${S} is wrong"
    assert hide_values("pass-word is wrong", ("a",), document) == "${S} is wrong"
    assert hide_values("pass-word is wrong", ("a", "b", "d"), document) == "${S} is wrong"
    assert hide_values("'written' is wrong", ("a", "c"), document) == "the value is wrong"


def test_names_that_are_offered_stay_whole() -> None:
    """A value that is part of a suggested name does not hide that name."""
    document = parse_document("a: usag\nb: ${S}\nc: x-${S}-y\n", {"S": "owne"})
    assert hide_values("'usag' is no way; use usage(…)", ("a",), document) == "the value is no way; use usage(…)"
    assert hide_values("usag: there is usage", ("a",), document) == "the value: there is usage"
    assert hide_values("owne is not owner", ("b",), document) == "${S} is not owner"
    # Inside a longer text, the value may be part of a secret, and is hidden.
    assert hide_values("x-owne-y, owney", ("c",), document) == "x-${S}-y, ${S}y"


def test_every_key_has_a_path() -> None:
    """Keys of nested models, and of mappings with free names, are found."""
    paths = [path for path, _ in walk(FileSettings)]
    assert "api.request_timeout_seconds" in paths
    assert "tenants.<name>.storage.connection_string" in paths


def test_the_model_of_a_place() -> None:
    """The model at a path is found, through mappings with free names."""
    assert model_at(FileSettings, ("tenants", "acme", "storage")) is StorageSettings
    assert model_at(FileSettings, ("tenants", "acme")) is TenantSettings
    assert model_at(TenantSettings, ("currency",)) is None
