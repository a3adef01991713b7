"""Lists as files."""

from __future__ import annotations

import httpx
import pytest

from tests.api.conftest import ACME, LAST, parameters_of


@pytest.mark.parametrize(("name", "rows"), [("chargebacks", 15), ("billing", 10)])
def test_files_have_all_rows(client: httpx.Client, name: str, rows: int) -> None:
    """A file has all rows whichever page is requested, a header and a file name."""
    response = client.get(f"{ACME}/{name}.csv", params={"page_size": 1})
    assert len(response.text.splitlines()) == rows + 1
    assert response.headers["content-disposition"] == f"attachment; filename={name}.csv"
    assert client.get(f"{ACME}/{name}", headers={"Accept": "text/csv"}).text == response.text
    assert client.get(f"{ACME}/{name}", headers={"Accept": "text/html, text/csv"}).json()["total"] == rows


def test_files_are_filtered(client: httpx.Client) -> None:
    """Files accept the filters of the list, and named periods."""
    params = {"period": "1d", "not.identity_id": "UNALLOCATED"}
    lines = client.get(f"{ACME}/chargebacks.csv", params=params).text.splitlines()
    assert len(lines) == 3
    assert all(line.startswith(str(LAST)) for line in lines[1:])
    assert parameters_of(client.get(f"{ACME}/billing.csv", params={"identity_id": "x"})) == ["identity_id"]
