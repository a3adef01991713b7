"""Files are written completely or not at all, under safe names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chargeback.emitters.files import check_template, file_name, write_whole
from chargeback.errors import EmitterError, Stopped

KNOWN = ("tenant_id", "date")


def nothing() -> None:
    """Do nothing: no stop is requested."""


def stop() -> None:
    """Raise as if a stop had been requested."""
    raise Stopped("the run was asked to stop")


def check_names(folder: Path) -> list[str]:
    """Return the names in a folder."""
    return sorted(path.name for path in folder.iterdir())


def test_folders_are_made_and_files_replaced(tmp_path: Path) -> None:
    """The former content is replaced, and no temporary file remains."""
    path = tmp_path / "a" / "b" / "x.csv"
    for content in (b"first", b"second"):
        write_whole(path, [content[:2], memoryview(content[2:])], nothing)
        assert path.read_bytes() == content
    assert check_names(path.parent) == ["x.csv"]


def test_a_file_that_fails_in_its_middle_leaves_the_old_one(tmp_path: Path) -> None:
    """After any error, the old content remains, with no part of the new one."""
    path = tmp_path / "x.csv"
    path.write_bytes(b"old")

    def pieces() -> Iterator[bytes]:
        yield b"new"
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write_whole(path, pieces(), nothing)
    with pytest.raises(Stopped):
        write_whole(path, [b"new"], stop)
    assert path.read_bytes() == b"old"
    assert check_names(tmp_path) == ["x.csv"]


def test_what_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    """A partial file of a killed process is removed when the file is written again."""
    (tmp_path / ".chargeback-4711-x.csv").write_bytes(b"half")
    (tmp_path / ".chargeback-4711-y.csv").write_bytes(b"another's")
    write_whole(tmp_path / "x.csv", [b"whole"], nothing)
    assert check_names(tmp_path) == [".chargeback-4711-y.csv", "x.csv"]


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """If a file is in the place of the folder, the error names the path."""
    (tmp_path / "taken").write_text("")
    with pytest.raises(EmitterError, match=r"taken/x\.csv cannot be written"):
        write_whole(tmp_path / "taken" / "x.csv", [b""], nothing)


def test_a_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    """A link under the name of the file is replaced; its target is not written."""
    outside = tmp_path / "outside"
    outside.write_text("untouched")
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "x.csv").symlink_to(outside)
    write_whole(folder / "x.csv", [b"new"], nothing)
    assert (outside.read_text(), (folder / "x.csv").read_bytes()) == ("untouched", b"new")


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        ("../{date}.csv", "without a folder"),
        ("a\\{date}.csv", "without a folder"),
        ("{date", "placeholders"),
        ("{month}.csv", "only contain"),
        ("{date.year}.csv", "only contain"),
        ("{date!r}.csv", "only contain"),
        ("{date:>20}.csv", "only contain"),
        ("{}.csv", "only contain"),
        ("{tenant_id}.csv", "should contain {date}"),
        ("", "should contain {date}"),
    ],
)
def test_templates_that_are_refused(template: str, reason: str) -> None:
    """A template is a single file name with known, plain placeholders."""
    with pytest.raises(ValueError, match=reason):
        check_template(template, KNOWN, required=("date",))


@pytest.mark.extensive
@given(st.text(min_size=1), st.sampled_from(["{tenant_id}{date}", "{date}{tenant_id}", "x-{tenant_id}-{date}.csv"]))
def test_no_value_leaves_the_folder(value: str, template: str) -> None:
    """With any characters in an id, the name is a single visible file name within the folder."""
    value = value.encode("utf-8", "replace").decode()
    name = file_name(check_template(template, KNOWN, ("date",)), {"tenant_id": value, "date": "2026-01-31"})
    assert Path("/out") / name == (Path("/out") / name).resolve()
    assert Path(name).name == name
    assert not name.startswith(".")


@given(st.text(), st.text())
def test_different_values_stay_different(one: str, other: str) -> None:
    """Different ids never have the same file name, although characters in them are replaced."""
    names = [
        file_name("{tenant_id}_{date}", {"tenant_id": each.encode("utf-8", "replace").decode(), "date": "d"})
        for each in (one, other)
    ]
    same = one.encode("utf-8", "replace") == other.encode("utf-8", "replace")
    assert (names[0] == names[1]) == same
