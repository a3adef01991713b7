"""Where days are calculated: the keys under ``features.compute``."""

from __future__ import annotations

from typing import Annotated, Final, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from chargeback.settings import LocalPath, Settings, Whole, is_loopback


def _scheduler(value: str) -> str:
    address = urlsplit(value)
    try:
        port = address.port
    except ValueError:
        port = None
    if address.scheme not in {"tls", "tcp"} or not address.hostname or not port:
        raise ValueError("should be the address of a Dask scheduler, such as tls://scheduler:8786")
    if address.scheme == "tcp" and not is_loopback(address.hostname):
        raise ValueError("should begin with tls://: who can reach a scheduler can run programs on its workers")
    return value


class ComputeSettings(Settings):
    """Where days are calculated: in the process of the run, by ``workers`` processes of this machine, or by the workers
    of the Dask scheduler at ``address``."""

    type: Literal["local", "dask"] = "local"
    address: Annotated[str, AfterValidator(_scheduler)] | None = None
    workers: Annotated[Whole, Field(ge=1, le=256)] | None = None
    tls_ca: LocalPath | None = None
    tls_cert: LocalPath | None = None
    tls_key: LocalPath | None = None

    @model_validator(mode="after")
    def _fit_together(self) -> Self:
        files = {"tls_ca": self.tls_ca, "tls_cert": self.tls_cert, "tls_key": self.tls_key}
        given = [name for name, value in {"address": self.address, "workers": self.workers, **files}.items() if value]
        if self.type == "local":
            if given:
                raise ValueError(f"{given[0]} needs the type dask")
            return self
        is_tls = self.address is not None and self.address.startswith("tls://")
        if self.address is not None and self.workers is not None:
            raise ValueError("workers is for a cluster of this machine; the scheduler at address has its own")
        if is_tls and not all(files.values()):
            raise ValueError("an address with tls:// needs tls_ca, tls_cert and tls_key")
        if not is_tls and any(files.values()):
            raise ValueError("tls_ca, tls_cert and tls_key are for an address with tls://")
        return self


#: In the process of the run.
LOCAL: Final = ComputeSettings()
