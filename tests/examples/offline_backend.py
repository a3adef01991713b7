"""A build backend (PEP 517) of a few lines, so that a pure Python package installs without any network.

The packages that tests install declare the usual backend of their authors; a test replaces it with this one. It
packs ``src/`` and writes the metadata that ``[project]`` of ``pyproject.toml`` describes.
"""

from __future__ import annotations

import base64
import hashlib
import tomllib
import zipfile
from pathlib import Path
from typing import Any


def build_wheel(
    wheel_directory: str, config_settings: dict[str, Any] | None = None, metadata_directory: str | None = None
) -> str:
    """Write the wheel and return its file name."""
    project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
    name = project["name"].replace("-", "_")
    info = f"{name}-{project['version']}.dist-info"
    sources = [file for file in sorted(Path("src").rglob("*.py")) if "__pycache__" not in file.parts]
    files = {file.relative_to("src").as_posix(): file.read_bytes() for file in sources}
    files[f"{info}/METADATA"] = _metadata(project)
    files[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: offline\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    files[f"{info}/entry_points.txt"] = _entry_points(project)
    records = [f"{path},{_digest(content)},{len(content)}" for path, content in files.items()]
    files[f"{info}/RECORD"] = "\n".join([*records, f"{info}/RECORD,,", ""]).encode()
    wheel = f"{name}-{project['version']}-py3-none-any.whl"
    with zipfile.ZipFile(Path(wheel_directory) / wheel, "w") as archive:
        for path, content in files.items():
            archive.writestr(path, content)
    return wheel


def _metadata(project: dict[str, Any]) -> bytes:
    lines = ["Metadata-Version: 2.1", f"Name: {project['name']}", f"Version: {project['version']}"]
    lines += [f"Requires-Dist: {dependency}" for dependency in project.get("dependencies", ())]
    return "\n".join([*lines, ""]).encode()


def _entry_points(project: dict[str, Any]) -> bytes:
    lines: list[str] = []
    for group, entries in project.get("entry-points", {}).items():
        lines += [f"[{group}]", *(f"{name} = {target}" for name, target in entries.items()), ""]
    return "\n".join(lines).encode()


def _digest(content: bytes) -> str:
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
