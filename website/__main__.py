"""``python -m website SITE``: builds the documentation into the folder ``SITE``.

Exits with 1 if a page is missing in the navigation, if the generator warns, if a link or an anchor leads nowhere, or if
a page would load anything from another host.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

from website.built import problems
from website.pages import ROOT, missing, navigation, settings, stage

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def main(site: Path) -> int:
    """Build and check the site; return the exit code."""
    whole = settings()
    if unlisted := missing(whole["nav"]):
        print(f"website/site.yaml and docs/ differ: {', '.join(sorted(unlisted))}", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder).resolve()
        stage(base / "docs")
        shutil.copytree(ROOT / "website" / "theme", base / "theme")
        whole["nav"] = navigation(whole["nav"])
        whole |= {"docs_dir": "docs", "site_dir": "site"}
        (base / "mkdocs.yml").write_text(yaml.safe_dump(whole, sort_keys=False), encoding="utf-8")
        command = [sys.executable, "-m", "zensical", "build", "--strict"]
        done = subprocess.run(command, cwd=base, capture_output=True, text=True, check=False)
        if done.returncode:
            print(_COLOURS.sub("", done.stdout + done.stderr.rpartition("Traceback")[0]), file=sys.stderr)
            return 1
        found = problems(base / "site")
        if found:
            print("\n".join(found), file=sys.stderr)
            return 1
        shutil.rmtree(site, ignore_errors=True)
        shutil.copytree(base / "site", site)
    print(f"{len(list(site.rglob('*.html')))} pages in {site}: open {site / 'index.html'}")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
