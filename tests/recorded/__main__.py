"""The commands of the recording: see the package."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from hashlib import sha256
from pathlib import Path

from tests.recorded.compare import compare
from tests.recorded.prepare import prepare, prepare_questions
from tests.recorded.record import Recorder


def main() -> int:
    """Prepare, record or compare."""
    parser = argparse.ArgumentParser(prog="python -m tests.recorded", description="Record what the service answers.")
    parser.add_argument("paths", nargs="*", type=Path, metavar="PATH", help="the storages, and the new recording")
    parser.add_argument("--prepare", type=Path, metavar="STORAGE", help="make the storages and the requests")
    parser.add_argument("--questions", type=Path, metavar="STORAGE", help="make only the requests again")
    parser.add_argument("--compare", nargs=2, type=Path, metavar=("BEFORE", "AFTER"), help="exit with 1 if they differ")
    parser.add_argument("--only", default="", metavar="TEXT", help="only requests whose names contain it")
    parser.add_argument("--bodies", type=Path, metavar="FOLDER", help="also keep whole answers, one file each")
    options = parser.parse_args()
    began = time.monotonic()
    if options.compare:
        return _compared(*options.compare)
    if options.prepare or options.questions:
        count = prepare(options.prepare) if options.prepare else prepare_questions(options.questions)
        print(f"{count} requests, {time.monotonic() - began:.0f} s")
        return 0
    if len(options.paths) != 2:
        parser.error("name the storages and the new recording")
    found = Recorder(options.only, _Keeper(options.bodies) if options.bodies else None).record(options.paths[0])
    text = json.dumps(found, ensure_ascii=False, indent=1, sort_keys=False)
    options.paths[1].write_text(text + "\n", encoding="utf-8")
    print(f"{len(found)} answers, {time.monotonic() - began:.0f} s")
    return 0


class _Keeper:
    """Writes complete responses to files named by a digest of the request; ``index.txt`` lists them."""

    def __init__(self, folder: Path) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        self._folder = folder

    def __call__(self, name: str, content: bytes) -> None:
        file = sha256(name.encode()).hexdigest()[:12]
        (self._folder / file).write_bytes(content)
        with (self._folder / "index.txt").open("a", encoding="utf-8") as index:
            index.write(f"{file} {name}\n")


def _compared(before: Path, after: Path) -> int:
    texts = list(compare(before, after))
    for text in texts:
        print(text + "\n")
    print(f"{len(texts)} answers differ" if texts else "all answers are the same")
    return 1 if texts else 0


if __name__ == "__main__":
    sys.exit(main())
