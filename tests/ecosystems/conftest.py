"""Access to a guarded plugin."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from chargeback.ecosystems.contract import Gatherer
from chargeback.ecosystems.guarded import guarded
from chargeback.ecosystems.settings import PluginSettings
from tests.ecosystems.plugins import DAY, Tiny, TinyGatherer, context_for


class Keyed(PluginSettings):
    """Settings with a secret."""

    key: SecretStr = SecretStr("s3cret-0123456789")


@pytest.fixture
def ask(tmp_path: Path) -> Callable[..., Any]:
    """Queries a guarded gatherer with replaced results."""

    def asking(question: Callable[[Gatherer], Any], **answers: Any) -> Any:
        plugin = guarded(Tiny(on_open=lambda *_: TinyGatherer(**answers), settings_model=Keyed))
        with plugin.open(context_for(tmp_path, DAY), Keyed()) as gatherer:
            return question(gatherer)

    return asking
