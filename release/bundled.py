"""The packages that are bundled into the browser page, as parts of a CycloneDX document."""

from __future__ import annotations

import json
from base64 import b64decode
from pathlib import Path
from typing import Any


def bundled(lock: Path) -> list[dict[str, Any]]:
    """Return the packages that the build of the browser page installs, as parts: what is bundled is among them."""
    found = []
    for place, package in json.loads(lock.read_text(encoding="utf-8"))["packages"].items():
        installed_as = place.rpartition("node_modules/")[2]
        if installed_as and not package.get("dev") and not package.get("optional"):
            name = package.get("name", installed_as)
            method, _, digest = package["integrity"].partition("-")
            purl = f"pkg:npm/{name.replace('@', '%40')}@{package['version']}"
            found.append(
                {
                    "type": "library",
                    "bom-ref": purl,
                    "name": name,
                    "version": package["version"],
                    "purl": purl,
                    "licenses": [{"license": {"id": package["license"]}}],
                    "hashes": [{"alg": method.replace("sha", "SHA-"), "content": b64decode(digest).hex()}],
                    "properties": [{"name": "chargeback:part-of", "value": "browser page"}],
                }
            )
    return found
