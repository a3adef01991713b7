"""YAML files of a folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from chargeback.category_sources.manifests import read_manifests
from chargeback.errors import ConfigurationError, SourceError


def test_scalars_are_texts(tmp_path: Path) -> None:
    """Numbers, dates and yes stay as they are written; documents that are no mappings are ignored."""
    (tmp_path / "a.yaml").write_text("a: 012\nb: yes\nc: 2026-01-01\nd:\n---\n- a\n---\n", encoding="utf-8")
    (tmp_path / "folder.yaml").mkdir()
    assert read_manifests(tmp_path) == [("a.yaml, document 1", {"a": "012", "b": "yes", "c": "2026-01-01", "d": ""})]


def test_what_cannot_be_read(tmp_path: Path) -> None:
    """Missing files, files that are no text, and files that are nested too deeply are errors."""
    with pytest.raises(SourceError) as missing:
        read_manifests(tmp_path / "none.yaml")
    assert str(missing.value) == f"{tmp_path}/none.yaml cannot be read: No such file or directory"
    (tmp_path / "a.yaml").write_bytes(b"a: \xff")
    (tmp_path / "b.yaml").write_text("[" * 5000, encoding="utf-8")
    with pytest.raises(ConfigurationError) as error:
        read_manifests(tmp_path)
    assert [str(each) for each in error.value.problems] == [
        "a.yaml: is not UTF-8",
        "b.yaml: is not YAML: it cannot be read",
    ]
