"""The base of all settings models, and types for paths, numbers and addresses."""

import ipaddress
from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Final, Self

from pydantic import (
    AfterValidator,
    AnyHttpUrl,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationInfo,
    model_validator,
)

from chargeback.disk import locate
from chargeback.model.money import parse_decimal

#: The longest time that a setting may name, in seconds: 31 days.
MAX_WAIT_SECONDS = 31 * 86_400
#: The key of pydantic's validation context for the folder of the configuration file.
FOLDER: Final = "folder"


class Settings(BaseModel):
    """Base of every settings model: unknown keys are errors, instances are immutable, and messages hide values (they
    could be secrets). A relative path starts at the folder of the configuration file, not at the working directory."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    @model_validator(mode="after")
    def _paths_start_at_the_file(self, info: ValidationInfo) -> Self:
        for name, value in self.__dict__.items():  # defaults included
            self.__dict__[name] = _located(value, info)
        return self


def _located(value: Any, info: ValidationInfo) -> Any:
    """Return the value with all paths absolute."""
    if isinstance(value, Path):
        return locate(str(value), (info.context or {}).get(FOLDER, Path()))
    if type(value) in {list, tuple, set, frozenset}:
        return type(value)(_located(each, info) for each in value)
    if type(value) is dict:
        return {key: _located(each, info) for key, each in value.items()}
    return value


def _located_text(value: object, info: ValidationInfo) -> object:
    return locate(value, (info.context or {}).get(FOLDER, Path())) if isinstance(value, str) else value


#: A path in a plugin's settings; a relative one becomes absolute, starting at the folder of the configuration file. A
#: text that cannot be a path is an error.
LocalPath = Annotated[Path, BeforeValidator(_located_text)]


def _not_a_boolean(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError("should be a whole number")  # noqa: TRY004 - pydantic wants ValueError
    return value


#: An integer; ``true`` is not one, although Python accepts it.
Whole = Annotated[int, BeforeValidator(_not_a_boolean)]


def _decimal_text(value: object) -> object:
    if isinstance(value, float):
        raise ValueError("quote the number, so that it is exact")  # noqa: TRY004 - pydantic wants ValueError
    return parse_decimal(str(value)) if isinstance(value, str | int) and not isinstance(value, bool) else value


#: A decimal that is written in quotes, so that no digit depends on a binary float.
ExactDecimal = Annotated[Decimal, BeforeValidator(_decimal_text)]


def _checked_url(value: str) -> str:
    try:
        address = AnyHttpUrl(value)
    except ValueError:
        raise ValueError("should be a URL such as https://metrics.example.com") from None
    if address.username or address.password:
        raise ValueError("should not contain credentials; use the separate keys for them")
    return value.rstrip("/")


#: An http(s) address without a trailing slash.
Url = Annotated[
    str,
    BeforeValidator(lambda value: value.strip() if isinstance(value, str) else value),
    AfterValidator(_checked_url),
]


class ObjectStoreSettings(Settings):
    """How object storage is reached. What is missing is taken from the environment, or from the role of the
    machine."""

    endpoint: Url | None = None
    region: Annotated[str, Field(min_length=1, max_length=100)] | None = None
    access_key_id: Annotated[str, Field(min_length=1)] | None = None
    secret_access_key: SecretStr | None = None
    retry_seconds: Annotated[Whole, Field(ge=1, le=600)] = 90
    allow_http: bool = False

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        if (self.access_key_id is None) != (self.secret_access_key is None):
            raise ValueError("access_key_id and secret_access_key belong together: give both, or none")
        if self.endpoint is not None and self.endpoint.startswith("http:") and not self.allow_http:
            raise ValueError("the endpoint is not encrypted: use https, or set allow_http: true in a trusted network")
        return self


def is_loopback(name: str) -> bool:
    """Return whether a host name or an address means this machine only.

    >>> is_loopback("localhost"), is_loopback("127.0.0.2"), is_loopback("::1"), is_loopback("0.0.0.0")
    (True, True, True, False)
    """
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name.lower() == "localhost"


def secrets_in(value: object) -> Iterator[str]:
    """Yield every secret in settings, at any depth."""
    if isinstance(value, SecretStr):
        yield value.get_secret_value()
    elif isinstance(value, BaseModel):
        for name in type(value).model_fields:
            yield from secrets_in(getattr(value, name))
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from secrets_in(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from secrets_in(each)
