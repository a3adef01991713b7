"""The diagrams of the documentation."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from website.diagrams import DIAGRAMS, FOLDER


@pytest.mark.parametrize("name", DIAGRAMS)
def test_the_files_are_those_of_the_script(name: str) -> None:
    """`python -m website.diagrams` reproduces the existing files."""
    assert (FOLDER / f"{name}.svg").read_text(encoding="utf-8") == DIAGRAMS[name].svg()


@pytest.mark.parametrize("name", DIAGRAMS)
def test_diagrams_are_pictures_with_a_title_and_nothing_else(name: str) -> None:
    """Diagrams are valid XML with a title, and load nothing."""
    root = ElementTree.fromstring(DIAGRAMS[name].svg())
    assert len(root.findtext("{http://www.w3.org/2000/svg}title") or "") > 40
    assert not [key for element in root.iter() for key in element.keys() if "href" in key]  # noqa: SIM118


def test_no_diagram_is_left_over() -> None:
    """Every diagram file belongs to a diagram."""
    assert {file.stem for file in FOLDER.iterdir()} == set(DIAGRAMS)
