"""Settings of connections to sources."""

from typing import Literal, Self

from pydantic import SecretStr, model_validator

from chargeback.settings import Settings, Url


class MetricsSettings(Settings):
    """A Prometheus-compatible metrics source."""

    type: Literal["prometheus"] = "prometheus"
    url: Url
    auth_type: Literal["none", "basic", "bearer"] = "none"
    username: str | None = None
    password: SecretStr | None = None
    bearer_token: SecretStr | None = None

    @model_validator(mode="after")
    def _credentials(self) -> Self:
        if self.auth_type == "basic" and not (self.username and self.password):
            raise ValueError("username and password required for basic authentication")
        if self.auth_type == "bearer" and not self.bearer_token:
            raise ValueError("bearer_token required for bearer authentication")
        return self
