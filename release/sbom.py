"""``python -m release.sbom PYTHON DIST``: writes what is shipped, with versions and licences, as CycloneDX 1.6.

The parts are the packages of the environment of the interpreter ``PYTHON``, in which the service is installed with the
lock, and the packages that are bundled into the browser page. The document is valid by its own schema, and the same
parts give the same document.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from release.bundled import bundled

ROOT = Path(__file__).parents[1]
#: In every environment, but not part of what is shipped.
_TOOLS = {"pip", "setuptools", "wheel"}


def main(interpreter: str, dist: Path) -> int:
    """Write the list; return the exit code."""
    document = packages(interpreter)
    document["components"] += bundled(ROOT / "web" / "package-lock.json")
    document["components"].sort(key=lambda part: str(part["purl"]))
    text = json.dumps(document, indent=2, sort_keys=True) + "\n"
    if problem := JsonStrictValidator(SchemaVersion.V1_6).validate_str(text):
        print(f"The list of parts is not valid CycloneDX: {problem}", file=sys.stderr)
        return 1
    dist.mkdir(parents=True, exist_ok=True)
    file = dist / f"chargeback-{document['metadata']['component']['version']}.cdx.json"
    file.write_text(text, encoding="utf-8")
    print(f"{file}: {len(document['components'])} parts")
    return 0


def packages(interpreter: str) -> dict[str, Any]:
    """Return the document about an environment, without the service itself, which it is about, and without tools."""
    command = [sys.executable, "-m", "cyclonedx_py", "environment", "--pyproject", str(ROOT / "pyproject.toml")]
    options = ["--mc-type", "application", "--sv", "1.6", "--of", "JSON", "--output-reproducible", interpreter]
    said = subprocess.run([*command, *options], check=True, stdout=subprocess.PIPE, text=True).stdout
    document: dict[str, Any] = json.loads(said)
    name = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["name"]
    left_out = {part["bom-ref"] for part in document["components"] if part["name"] in _TOOLS | {name}}
    document["components"] = [part for part in document["components"] if part["bom-ref"] not in left_out]
    document["dependencies"] = [part for part in document["dependencies"] if part["ref"] not in left_out]
    return document


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2])))
