"""The place of a tenant's facts in object storage, in a normalised form."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final
from urllib.parse import urlsplit

from chargeback.config.settings import CacheSettings
from chargeback.settings import ObjectStoreSettings, secrets_in

S3: Final = "s3"
AZURE: Final = "az"
GOOGLE: Final = "gs"
_SCHEMES: Final = (S3, AZURE, GOOGLE)

_BUCKET: Final = re.compile(r"[a-z0-9][a-z0-9._-]{1,62}")
#: Part of a prefix: no character that readers of Delta tables interpret, and not only dots.
_PART: Final = re.compile(r"(?!\.+$)[A-Za-z0-9_.+@~-]+")
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class ObjectLocation:
    """A prefix of a bucket (of a container in Azure), how it is reached, and where copies of its files are kept.

    ``prefix`` has no slash at its ends; it is empty for the whole bucket.
    """

    scheme: str
    bucket: str
    prefix: str
    settings: ObjectStoreSettings = field(repr=False)
    cache: CacheSettings = field(default_factory=CacheSettings)

    @classmethod
    def of(cls, url: str, settings: ObjectStoreSettings, cache: CacheSettings | None = None) -> ObjectLocation:
        """Return the place that a URL names: ``s3://bucket/prefix``, also with ``az`` or ``gs``.

        Raises:
            ValueError: it names none. The message shows no value.
        """
        scheme, _, rest = url.strip().partition("://")
        bucket, _, path = rest.partition("/")
        parts = [part for part in path.split("/") if part]
        if scheme not in _SCHEMES:
            raise ValueError("should be a folder, or s3://bucket/prefix, az://container/prefix or gs://bucket/prefix")
        if not _BUCKET.fullmatch(bucket):
            raise ValueError("names no bucket: s3://bucket/prefix")
        if not all(_PART.fullmatch(part) for part in parts):
            raise ValueError("the prefix should consist of letters, digits and _ . - + @ ~, in parts between slashes")
        return cls(scheme, bucket, "/".join(parts), settings, cache or CacheSettings())

    def __str__(self) -> str:
        return f"{self.scheme}://{self.bucket}/{self.prefix}".rstrip("/")

    @property
    def server(self) -> str:
        """The server in a normal form: that of the endpoint, or the provider's; of Azure, with the account."""
        account = (self.settings.access_key_id or "") if self.scheme == AZURE else ""
        if self.settings.endpoint is None:
            return f"{self.scheme}:{account}"
        address = urlsplit(self.settings.endpoint.lower())
        port = address.port or _DEFAULT_PORTS[address.scheme]
        return f"{self.scheme}:{account}@{address.hostname}:{port}{address.path}"

    def tried_for(self, seconds: float | None) -> ObjectLocation:
        """Return the same place, where a failed request is made again for that many seconds at most."""
        if seconds is None or seconds >= self.settings.retry_seconds:
            return self
        return replace(self, settings=self.settings.model_copy(update={"retry_seconds": max(int(seconds), 1)}))

    def overlaps(self, other: ObjectLocation) -> bool:
        """Return whether both are the same place, or one contains the other."""
        if (self.server, self.bucket) != (other.server, other.bucket):
            return False
        mine, theirs = f"{self.prefix}/".lstrip("/"), f"{other.prefix}/".lstrip("/")
        return mine.startswith(theirs) or theirs.startswith(mine)

    def secrets(self) -> Iterator[str]:
        """Yield the texts that must not be shown."""
        return secrets_in(self.settings)
