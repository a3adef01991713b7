"""How the months of a tenant are closed."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field, SecretStr, StringConstraints

from chargeback.settings import ExactDecimal, Settings

_KEY_BYTES: Final = 32

#: By what statements can be made.
Grouping = Annotated[str, StringConstraints(pattern=r"^(identity_id|(tag|category):[A-Za-z0-9][A-Za-z0-9_.:-]{0,63})$")]


def _key_of_32_bytes(value: SecretStr) -> SecretStr:
    try:
        is_key = len(base64.b64decode(value.get_secret_value(), validate=True)) == _KEY_BYTES
    except ValueError:
        is_key = False
    if not is_key:
        raise ValueError("should be 32 bytes in base64; `openssl rand -base64 32` prints a good one")
    return value


class ClosingSettings(Settings):
    """The groupings of the statements of closed months, who closes them, the share of unowned costs (percent) above
    which a preview warns, and the private key (Ed25519, 32 bytes in base64) that signs receipts."""

    by: list[Grouping] = Field(default_factory=list, max_length=10)
    approval: Literal["one_person", "two_people"] = "one_person"
    warn_percent: Annotated[ExactDecimal, Field(ge=0, le=100)] = Decimal(5)
    signing_key: Annotated[SecretStr, AfterValidator(_key_of_32_bytes)] | None = None


@dataclass(frozen=True, slots=True)
class ClosingProfile:
    """The same of one tenant, with its private key as bytes, and with the days that decide what can still change: after
    how many a bill is final, and how long days are gathered again and kept."""

    by: tuple[str, ...] = ("category:cost_center",)
    needs_two: bool = False
    warn_percent: Decimal = Decimal(5)
    cutoff_days: int = 5
    lookback_days: int = 200
    retention_days: int = 250
    signing_key: bytes | None = field(default=None, repr=False)
