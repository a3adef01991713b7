"""Policies over HTTP: the hash of every row leads to its policy."""

from __future__ import annotations

from tests.contract.records import Client, Everything, those


def test_every_row_leads_to_its_policy(client: Client, everything: Everything) -> None:
    """The policy with the hash of a row is listed under its product type, with the time of its first use."""
    path = f"{everything.base}/policies"
    used = {(row["product_type"], row["metadata"]["policy"]) for row in everything.chargebacks}
    for product_type, hash_ in used:
        (found,) = client.all_items(path, product_type=product_type, hash=hash_)
        assert found["first_used_at"] is not None
        assert found in client.all_items(path, hash=hash_)


def test_the_policy_is_that_of_the_explanation(client: Client, everything: Everything) -> None:
    """An explanation has the same portions as the list."""
    row = those(everything.chargebacks, allocation_method="usage_ratio")[0]
    key = {"date": row["timestamp"][:10], "identity_id": row["identity_id"]}
    of_line = {name: row["metadata"][name] for name in ("line_id", "portion")}
    explained = client.answer(f"{everything.base}/chargebacks/explain", **key, **of_line)["policy"]
    (listed,) = client.all_items(f"{everything.base}/policies", product_type=row["product_type"])
    assert {name: listed[name] for name in ("hash", "source", "portions")} == {
        name: explained[name] for name in ("hash", "source", "portions")
    }


def test_pages_and_filters(client: Client, everything: Everything) -> None:
    """All policies are listed once, in pages; unknown hashes and types return nothing."""
    path = f"{everything.base}/policies"
    everyone = client.all_items(path)
    assert client.all_items(path, page_size=3) == everyone
    assert len({(item["product_type"], item["hash"]) for item in everyone}) == len(everyone)
    assert client.all_items(path, hash="none") == client.all_items(path, product_type="NONE") == []
