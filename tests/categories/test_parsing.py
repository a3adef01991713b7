"""Parsing documents of cost categories, and the exact message of every mistake."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest
import yaml

from chargeback.categories import parsing, reading
from chargeback.categories.document import (
    CategoryValue,
    Constant,
    CostCategory,
    FromTag,
    Handover,
    Rule,
    Split,
    Template,
)
from chargeback.categories.matching import All, Not, Pattern, Test
from chargeback.categories.parsing import parse_category, to_document, warnings_of
from chargeback.errors import CategoryError, CategoryProblem
from chargeback.model.dated import DatedValue, Period

EXAMPLE = r"""
default: UNASSIGNED
values:
  payments:
    name: Payments
    parent: retail
    gl: {account: [{value: "54200", valid_from: 2026-01-01}, {value: "54100", valid_to: 2026-01-01}]}
    contacts: [lead@example.com]
    valid_from: 2026-01-01
  search: {}
  retail: {name: Retail}
  orders:
rules:
  - {id: reorg, match: {identity: [sa-a]}, assign: payments, valid_from: 2026-03-01, valid_to: "2026-10-01", reason: R}
  - {match: {topic: {prefix: "pay."}}, assign: payments}
  - {match: {display_name: {regex: "^(?P<team>[a-z]+)-(prod|dev)$"}}, assign: "x-${team}"}
  - {match: {tag: {key: team}}, assign: {from_tag: team}}
  - {match: {resource: [lkc-1]}, split: {payments: "60", orders: 40}}
  - {match: {all: [{not: {environment: env-1}}, {product_type: [SUPPORT*, OTHER]}]}, assign: orders}
share:
  - {from: retail, to: "*", by: proportional, monthly: {orders: "500.00"}}
  - {from: search, monthly: {payments: 31}}
  - {from: payments, to: [orders], by: usage(bytes_in)}
  - {from: UNASSIGNED, by: {fixed: {payments: 33.3, orders: 66.7}}}
"""


def test_an_example_is_read() -> None:
    """Every form of match, assignment and step is parsed."""

    def exact(subject: str, text: str) -> Test:
        return Test(subject, Pattern((("exact", text),)))

    regex = "^(?P<team>[a-z]+)-(prod|dev)$"
    support = Test("product_type", Pattern((("glob", "SUPPORT*"), ("exact", "OTHER"))))
    since, until = Period(date(2026, 1, 1)), Period(None, date(2026, 1, 1))
    assert parse_category("cost_center", yaml.safe_load(EXAMPLE)) == CostCategory(
        "cost_center",
        "UNASSIGNED",
        (
            CategoryValue("orders"),
            CategoryValue(
                "payments",
                "Payments",
                (DatedValue("retail"),),
                (("account", (DatedValue("54100", until), DatedValue("54200", since))),),
                ("lead@example.com",),
                since,
            ),
            CategoryValue("retail", "Retail"),
            CategoryValue("search"),
        ),
        (
            Rule(
                exact("identity", "sa-a"),
                Constant("payments"),
                "reorg",
                Period(date(2026, 3, 1), date(2026, 10, 1)),
                "R",
            ),
            Rule(Test("topic", Pattern((("prefix", "pay."),))), Constant("payments")),
            Rule(Test("display_name", Pattern((("regex", regex),))), Template(("x-", "team", ""))),
            Rule(Test("tag", None, "team"), FromTag("team")),
            Rule(exact("resource", "lkc-1"), Split((("orders", Decimal(40)), ("payments", Decimal(60))))),
            Rule(All((Not(exact("environment", "env-1")), support)), Constant("orders")),
        ),
        (
            Handover("retail", None, "proportional", fees=(("orders", (DatedValue("500.00"),)),)),
            Handover("search", (), None, fees=(("payments", (DatedValue("31"),)),)),
            Handover("payments", ("orders",), "usage", metric="bytes_in"),
            Handover(
                "UNASSIGNED",
                ("orders", "payments"),
                "fixed",
                (("orders", Decimal("66.7")), ("payments", Decimal("33.3"))),
            ),
        ),
    )


def test_an_example_comes_back_in_its_canonical_form() -> None:
    """The canonical form can be written as YAML and parses to the same category."""
    category = parse_category("cost_center", yaml.safe_load(EXAMPLE))
    assert parse_category("cost_center", yaml.safe_load(yaml.safe_dump(to_document(category)))) == category


def test_sets_are_what_they_list() -> None:
    """A rule with a named set matches what its list matches; the canonical form keeps the name, and the list once."""
    shared = ["lkc-1", "lkc-test-*"]
    rules = [{"match": {"resource": {"set": "shared"}}, "assign": "a"}, {"match": {"tag": {"key": "k"}}, "assign": "b"}]
    named = parse_category("c", {"sets": {"shared": shared, "never": {"prefix": "x"}}, "rules": rules})
    plain = parse_category("c", {"rules": [{"match": {"resource": shared}, "assign": "a"}, rules[1]]})
    (one, other) = (each.rules[0].match for each in (named, plain))
    assert isinstance(one, Test)
    assert isinstance(other, Test)
    assert one.pattern is not None
    assert other.pattern is not None
    assert (one.pattern.alternatives, one.pattern.named) == (other.pattern.alternatives, "shared")
    document = to_document(named)
    assert document["sets"] == {"never": {"prefix": ["x"]}, "shared": shared}
    assert document["rules"][0]["match"] == {"resource": {"set": "shared"}}
    assert parse_category("c", document) == named


def test_sets_that_are_not_there() -> None:
    """For an unknown set, a similar name is suggested; sets cannot refer to other sets."""
    wrong = {
        "sets": {"shared": ["lkc-1"], "more": {"set": "shared"}},
        "rules": [{"match": {"resource": {"set": "shard"}}, "assign": "a"}],
    }
    with pytest.raises(CategoryError) as raised:
        parse_category("c", wrong)
    assert [str(each) for each in raised.value.problems] == [
        "sets.more.set: unknown set 'shared'; the document has no sets",
        "rules[0].match.resource.set: unknown set 'shard'; did you mean shared?; sets has shared",
    ]


def test_a_text_with_a_star_stays_exact_where_it_was_declared_so() -> None:
    """An exact text that looks like a glob stays exact in the canonical form."""
    document = {"rules": [{"match": {"topic": {"exact": ["a*", "b"]}}, "assign": "x"}]}
    assert to_document(parse_category("k", document))["rules"][0]["match"] == {"topic": {"exact": ["a*", "b"]}}


def _problems(document: object, key: str = "k") -> list[str]:
    with pytest.raises(CategoryError) as raised:
        parse_category(key, document)
    return [str(problem) for problem in raised.value.problems]


R = {"match": {"identity": "sa-1"}, "assign": "a"}
TEXT = "should be a text; quote numbers, dates, true and false"
DATE = "should be a date such as 2026-03-01"
PERCENTAGE = 'should be a percentage such as "60" or "33.3"'
RANGE = "should be above 0 and at most 100"
PLACES = "should have at most 12 decimal places"
MATCHES = (
    "identity, resource, cluster, environment, topic, product_type, product_category, tag, display_name, all, any, not"
)
BY = "should be proportional, even, usage(metric) such as usage(bytes_in), or fixed: {value: percentage}"


def _rule(**fields: object) -> dict[str, Any]:
    return {"rules": [{**R, **fields}]}


def _match(document: object) -> dict[str, Any]:
    return {"rules": [{"match": document, "assign": "a"}]}


def _split(document: object) -> dict[str, Any]:
    return {"rules": [{"match": R["match"], "split": document}]}


def _share(*steps: object) -> dict[str, Any]:
    return {"share": list(steps)}


def _nested(depth: int) -> dict[str, Any]:
    return {"not": _nested(depth - 1)} if depth > 1 else {"identity": "x"}


def _endless() -> dict[str, Any]:
    """Return the result of parsing ``&a {all: [*a]}`` as YAML."""
    document: dict[str, Any] = {}
    document["all"] = [document]
    return document


WRONG: list[tuple[object, list[str]]] = [
    (None, ["should be a mapping with the keys default, values, sets, rules, share"]),
    ({"defualt": "a"}, ["defualt: unknown key; did you mean default?"]),
    ({"default": 5}, [f"default: {TEXT}"]),
    ({"default": ""}, ["default: should not be empty"]),
    ({"default": "*"}, ["default: '*' cannot be the name of a value"]),
    ({"default": "a\nb"}, ["default: should have no control characters"]),
    ({"default": " a"}, ["default: should not start or end with a space"]),
    ({"default": "x" * 256}, ["default: should have at most 255 characters"]),
    ({"values": []}, ["values: should be a mapping of values to their entries"]),
    (
        {"values": {"a": {"valid_from": "2026-01-01", "valid_to": "2026-01-01"}}},
        ["values.a: valid_from 2026-01-01 is not before valid_to 2026-01-01, the first day on which it ends"],
    ),
    ({"values": {5: None}}, [f"values.5: its key {TEXT}"]),
    ({"values": {1 << 20_000: None}}, [f"values.a number: its key {TEXT}"]),
    ({"x" * 300: None, "a\n": None}, [f"'{'x' * 78}…: unknown key", r"'a\n': unknown key"]),
    (
        {"values": {"a": 3}},
        ["values.a: should be a mapping with the keys name, parent, gl, contacts, valid_from, valid_to"],
    ),
    ({"values": {"a": {"nam": "A"}}}, ["values.a.nam: unknown key; did you mean name?"]),
    (
        {"values": {"payments": {}, "a": {"parent": "paymants"}}},
        ["values.a.parent: unknown value 'paymants'; did you mean payments?; values has a, payments"],
    ),
    ({"values": {"a": {"gl": {"account": 54100}}}}, [f"values.a.gl.account: {TEXT}"]),
    ({"values": {"a": {"gl": "x"}}}, ["values.a.gl: should be a mapping of names to texts"]),
    ({"values": {"a": {"contacts": "me"}}}, ["values.a.contacts: should be a list of texts"]),
    ({"values": {"a": {"contacts": [1]}}}, [f"values.a.contacts[0]: {TEXT}"]),
    (
        {"values": {"UNASSIGNED": {"valid_from": "2026-01-01"}}},
        ["values.UNASSIGNED: is the default, which holds on every day; remove valid_from and valid_to"],
    ),
    (
        {"default": "none", **_rule(assign="UNASSIGNED")},
        ["rules[0].assign: UNASSIGNED can only be the default, which is none here"],
    ),
    (
        {"values": {"a": {"parent": "b"}, "b": {"parent": "c"}, "c": {"parent": "a"}}},
        ["values.a.parent: the parents form a cycle: a → b → c → a"],
    ),
    (
        {"values": {f"v{place:04}": {"parent": f"v{(place + 1) % 5000:04}"} for place in range(5000)}},
        [
            "values.v0000.parent: the parents form a cycle: v0000 → v0001 → v0002 → v0003 → v0004 → v0005 → … → v4996"
            " → v4997 → v4998 → v4999 → v0000"
        ],
    ),
    ({"values": {"a": {"parent": "a"}}}, ["values.a.parent: the parents form a cycle: a → a"]),
    (
        {
            "values": {
                "a": {"parent": [{"value": "b", "valid_to": "2026-03-01"}]},
                "b": {"parent": [{"value": "a", "valid_from": "2026-02-01"}]},
            }
        },
        ["values.a.parent: the parents form a cycle 2026-02-01 to 2026-03-01: a → b → a"],
    ),
    (
        {"values": {"a": {"gl": {"account": [{"value": "1"}, {"value": "2", "valid_from": "2026-02-01"}, "3"]}}}},
        [
            "values.a.gl.account[1]: holds on days on which values.a.gl.account[0] holds already; "
            "give it valid_from or valid_to",
            "values.a.gl.account[2]: should be a mapping with the keys value, valid_from, valid_to",
            "values.a.gl.account[2]: holds on days on which values.a.gl.account[0] holds already; "
            "give it valid_from or valid_to",
        ],
    ),
    ({"values": {"a": {"parent": []}}}, ["values.a.parent: should not be empty"]),
    (
        {"values": {f"v{place}": None for place in range(10_001)}},
        ["values: has 10,001 entries; at most 10,000 are allowed"],
    ),
    ({"rules": [R] * 5_001}, ["rules: has 5,001 entries; at most 5,000 are allowed"]),
    ({"rules": {}}, ["rules: should be a list of rules"]),
    (
        {"rules": ["x"]},
        ["rules[0]: should be a mapping with the keys id, match, assign, split, valid_from, valid_to, reason"],
    ),
    ({"rules": [{}]}, ["rules[0].match: this key is required", "rules[0]: needs assign or split"]),
    ({"rules": [{**R, "id": "x"}, {**R, "id": "x"}]}, ["rules[1].id: rules[0] has the id x already; ids are unique"]),
    (_rule(id="rules[3]"), ["rules[0].id: rules[3] is how a rule without an id is named; choose another id"]),
    (_rule(split={"a": "60", "b": "40"}), ["rules[0]: has both assign and split; keep one of them"]),
    (
        _rule(valid_from="2026-10-01", valid_to="2026-03-01"),
        ["rules[0]: valid_from 2026-10-01 is not before valid_to 2026-03-01, the first day on which it ends"],
    ),
    (_rule(valid_from="2026-02-30"), ["rules[0].valid_from: 2026-02-30 is not a day of the calendar"]),
    (_rule(valid_to="tomorrow"), [f"rules[0].valid_to: {DATE}"]),
    (_rule(valid_to=20260101), [f"rules[0].valid_to: {DATE}"]),
    (_rule(valid_from=datetime(2026, 1, 1)), [f"rules[0].valid_from: {DATE}"]),  # noqa: DTZ001 - as YAML gives it
    (_rule(reason="x" * 2001), ["rules[0].reason: should have at most 2,000 characters"]),
    (_rule(asign="b"), ["rules[0].asign: unknown key; did you mean assign?"]),
    (
        {"values": {f"v{place}": None for place in range(12)}, **_rule()},
        ["rules[0].assign: unknown value 'a'; values has v0, v1, v10, v11, v2, v3, v4, v5, v6, v7 and 2 more"],
    ),
    (_rule(assign=5), [f"rules[0].assign: {TEXT}"]),
    (_rule(assign={}), ["rules[0].assign: should be a value, or {from_tag: key}"]),
    (_rule(assign={"from_tags": "x"}), ["rules[0].assign.from_tags: unknown key; did you mean from_tag?"]),
    (_rule(assign="${team}"), ["rules[0].assign: no regex of the match has a group team; name one with (?P<team>…)"]),
    (
        {"rules": [{"match": {"identity": {"regex": "(?P<teams>a)"}}, "assign": "${team}"}]},
        ["rules[0].assign: no regex of the match has a group team; did you mean teams?"],
    ),
    (
        {"rules": [{"match": {"not": {"identity": {"regex": "(?P<team>a)"}}}, "assign": "${team}"}]},
        ["rules[0].assign: the group team is below not, where nothing is captured"],
    ),
    (_rule(assign="${team"), ["rules[0].assign: a group is written ${name}"]),
    (_split({"a": "60", "b": "30"}), ["rules[0].split: 60 + 30 = 90; they must sum to 100"]),
    (
        _split({f"v{place:02}": "3" for place in range(12)}),
        ["rules[0].split: 3 + 3 + 3 + 3 + 3 + 3 + 3 + 3 + 3 + 3 + … = 36; they must sum to 100"],
    ),
    (_split({"a": "100"}), ["rules[0].split: needs at least two values; for one, use assign"]),
    (_split({}), ["rules[0].split: needs at least two values; for one, use assign"]),
    (_split({"a": "NaN", "b": float("inf")}), [f"rules[0].split.a: {PERCENTAGE}", f"rules[0].split.b: {PERCENTAGE}"]),
    (_split({"a": "1e999999", "b": "-1"}), [f"rules[0].split.a: {RANGE}", f"rules[0].split.b: {RANGE}"]),
    (_split({"a": 10**5000, "b": True}), [f"rules[0].split.a: {PERCENTAGE}", f"rules[0].split.b: {PERCENTAGE}"]),
    (_split({"a": "1e-999999999", "b": "99.9999999999999"}), [f"rules[0].split.{each}: {PLACES}" for each in "ab"]),
    (_split(["a"]), ["rules[0].split: should be a mapping of values to percentages"]),
    (_split({5: 50, "b": 50}), [f"rules[0].split.5: its key {TEXT}"]),
    (_match({}), [f"rules[0].match: should not be empty; it needs one of {MATCHES}"]),
    (_match([]), [f"rules[0].match: should be a mapping with the keys {MATCHES}"]),
    (_match({"identity_id": "x"}), ["rules[0].match.identity_id: unknown key; did you mean identity?"]),
    (
        _match({"identity": "x", "topic": {"regex": "("}}),
        [
            "rules[0].match: has identity and topic; put them in a list below all, or any",
            "rules[0].match.topic.regex: is not a regex of RE2: missing ) at position 1 in '('",
        ],
    ),
    (_match({"identity": []}), ["rules[0].match.identity: should not be empty"]),
    (
        _match({"topic": {"regex": ["pay", "a{1,1000}" * 50]}}),
        [
            "rules[0].match.topic.regex[1]: is too large a regex: with its repetitions unfolded it has about 99,950 "
            "parts, at most 1,300 are allowed; repeat less often, or use * or +: 'a{1,1000}a{1,1000}a{1,1000}"
            "a{1,1000}a{1,1000}a{1,1000}a{1,1000}a{1,1000}a{1,10…"
        ],
    ),
    (_match({"identity": {}}), ["rules[0].match.identity: should have one of exact, glob, prefix, regex"]),
    (_match({"identity": None}), ["rules[0].match.identity: should be a text or a list of texts; quote numbers"]),
    (_match({"identity": ["a", 1]}), [f"rules[0].match.identity[1]: {TEXT}"]),
    (_match({"identity": {"regx": "x"}}), ["rules[0].match.identity.regx: unknown key; did you mean regex?"]),
    (
        _match({"identity": {"regex": "a", "glob": "b"}}),
        ["rules[0].match.identity: should have one of exact, glob, prefix, regex"],
    ),
    (_match({"identity": "\ud800"}), ["rules[0].match.identity: should have no control characters"]),
    (_match({"identity": "x" * 2001}), ["rules[0].match.identity: should have at most 2,000 characters"]),
    (_match({"identity": ["x"] * 10_001}), ["rules[0].match.identity: has 10,001 entries; at most 10,000 are allowed"]),
    (_match({"all": []}), ["rules[0].match.all: should not be empty"]),
    (_match({"any": {}}), ["rules[0].match.any: should be a list of matches"]),
    (_match(_nested(11)), [f"rules[0].match{'.not' * 10}: is nested more than 10 levels deep"]),
    (_match(_endless()), [f"rules[0].match{'.all[0]' * 10}: is nested more than 10 levels deep"]),
    (_match({"tag": "team"}), ["rules[0].match.tag: should be a mapping with the keys key, value"]),
    (
        _match({"tag": {"value": []}}),
        ["rules[0].match.tag.key: this key is required", "rules[0].match.tag.value: should not be empty"],
    ),
    (
        _share({}),
        [
            "share[0].from: this key is required",
            "share[0].to: this key is required",
            "share[0].by: this key is required",
        ],
    ),
    (_share(5), ["share[0]: should be a mapping with the keys from, to, by, monthly"]),
    (
        _share({"from": "a", "to": "b", "by": "even"}),
        ['share[0].to: should be "*" for every other value, or a list of values'],
    ),
    (_share({"from": "a", "monthly": {}}), ["share[0].monthly: should not be empty"]),
    (_share({"from": "a", "monthly": {"a": "1"}}), ["share[0]: the steps form a cycle: a → a"]),
    (_share({"from": "a", "to": "*", "monthly": {"b": "1"}}), ["share[0].by: this key is required"]),
    (
        _share({"from": "a", "monthly": {"b": "0", "c": "much", "d": "0.0000000000001", "e": 10**12}}),
        [
            "share[0].monthly.b: should be above 0 and below 1,000,000,000,000",
            'share[0].monthly.c: should be an amount such as "500.00"',
            "share[0].monthly.d: should have at most 12 decimal places",
            "share[0].monthly.e: should be above 0 and below 1,000,000,000,000",
        ],
    ),
    (_share({"from": "a", "to": [], "by": "even"}), ["share[0].to: should not be empty"]),
    (_share({"from": "a", "to": "*", "by": "evn"}), [f"share[0].by: {BY}; did you mean even?"]),
    (_share({"from": "a", "to": "*", "by": 5}), [f"share[0].by: {BY}"]),
    (_share({"from": "a", "by": {}}), [f"share[0].by: {BY}"]),
    (_share({"from": "a", "by": {"fixd": {}}}), ["share[0].by.fixd: unknown key; did you mean fixed?"]),
    (_share({"from": "a", "by": {"fixed": {}}}), ["share[0].by.fixed: should not be empty"]),
    (
        _share({"from": "a", "by": {"fixed": {"b": "50", "c": "40"}}}),
        ["share[0].by.fixed: 50 + 40 = 90; they must sum to 100"],
    ),
    (
        _share({"from": "a", "to": "*", "by": {"fixed": {"b": "100"}}}),
        ["share[0].to: the values of fixed are the targets; remove to"],
    ),
    (
        _share({"from": "a", "to": "*", "by": "even"}, {"from": "a", "to": ["c"], "by": "even"}),
        ["share[1].from: a hands on its cost in share[0] already"],
    ),
    (
        _share(
            {"from": "platform", "to": ["infra"], "by": "even"}, {"from": "infra", "to": ["platform"], "by": "even"}
        ),
        ["share[0]: the steps form a cycle: platform → infra → platform"],
    ),
    (_share({"from": "a", "to": ["a"], "by": "even"}), ["share[0]: the steps form a cycle: a → a"]),
    (
        {"values": {"a": {}}, **_share({"from": "b", "to": ["c"], "by": "even"})},
        ["share[0].from: unknown value 'b'; values has a", "share[0].to[0]: unknown value 'c'; values has a"],
    ),
]


@pytest.mark.parametrize(("document", "problems"), WRONG, ids=[each[1][0][:60] for each in WRONG])
def test_a_mistake_is_named_with_its_place(document: object, problems: list[str]) -> None:
    """The message says where the mistake is, what is wrong and what to do."""
    assert _problems(document) == problems


def test_not_all_of_many_problems_are_listed() -> None:
    """The first thousand problems are listed, with a note about the rest."""
    found = _problems({f"k{number}": 1 for number in range(1500)})
    assert found[:2] == ["k0: unknown key", "k1: unknown key"]
    assert (len(found), found[-2:]) == (1001, ["k999: unknown key", "has more problems than these 1,000"])


def test_all_regexes_together_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """If regexes are too large in total, the first one beyond the limit is refused, and the rest are not compiled."""
    monkeypatch.setattr(reading, "MAX_REGEXES_SIZE", 4_000)
    document = _match({"topic": {"regex": [f"{number}a{{999}}" for number in range(9)]}})
    assert _problems(document) == [
        "rules[0].match.topic.regex[4]: the regexes of the document are too large in all: with their repetitions "
        "unfolded they have more than 4,000 parts; the rest was not read"
    ]


def test_stored_regexes_may_be_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stored document with regexes beyond the limit works, with warnings; a new one is refused."""
    monkeypatch.setattr(parsing, "MAX_REGEXES_SIZE", 6_000)
    document = _match({"any": [{"topic": {"regex": ["pay", r"^[\pL\d_-]{1,63}$"]}}, {"identity": "x"}]})
    one = (
        "is too large a regex: with its repetitions unfolded it has about 6,427 parts, at most 1,300 are allowed; "
        "repeat less often, or use * or +: '^[\\\\pL\\\\d_-]{1,63}$'"
    )
    assert _problems(document) == [f"rules[0].match.any[0].topic.regex[1]: {one}"]
    warnings = warnings_of(parse_category("team", document, is_stored=True))
    assert [(each.path, each.message) for each in warnings] == [
        ("rules[0].match", one),
        ("rules", reading.too_large_in_all()),
    ]


@pytest.mark.parametrize("key", ["", "1x", "a b", "x" * 65, "é"])
def test_a_key_is_a_plain_word(key: str) -> None:
    """Keys are plain words, for use in addresses, parameters and columns."""
    message = "should start with a letter and have at most 64 letters, digits, _ or -"
    assert _problems({}, key) == [f"the key {key!r} {message}"]


def test_a_long_document_names_all_of_its_mistakes() -> None:
    """Of 500 rules, the three wrong ones are named in order."""
    rules: list[dict[str, Any]] = [{"id": f"r{place}", **R} for place in range(500)]
    rules[17] = {"match": R["match"], "split": {"a": "60", "b": "30"}}
    rules[203] = {**R, "match": {"topic": {"regex": "pay[.-"}}}
    rules[499] = {**R, "assign": "paymnts"}
    assert _problems({"values": {"a": None, "b": None, "payments": None}, "rules": rules}) == [
        "rules[17].split: 60 + 30 = 90; they must sum to 100",
        "rules[203].match.topic.regex: is not a regex of RE2: missing ] at position 4: [.- in 'pay[.-'",
        "rules[499].assign: unknown value 'paymnts'; did you mean payments?; values has a, b, payments",
    ]


def test_aliases_cannot_unfold_to_an_endless_document() -> None:
    """A small YAML file whose aliases expand without end is refused at the limit of entries."""
    texts = ["x"] * 10_000
    matches: dict[str, Any] = {"any": [{"identity": texts}] * 30}
    assert _problems(_match(matches)) == [
        "rules[0].match.any[19].identity: the document has more than 200,000 entries in all; the rest was not read"
    ]


def test_values_that_differ_only_in_case_are_a_warning() -> None:
    """Values that differ only in case are accepted with a warning."""
    document = {"rules": [_rule()["rules"][0], {**R, "assign": "A"}, {**R, "assign": "Unassigned"}]}
    assert warnings_of(parse_category("k", document)) == [
        CategoryProblem("rules[1].assign", "the values a and A differ only in case"),
        CategoryProblem("rules[2].assign", "the values UNASSIGNED and Unassigned differ only in case"),
    ]


@pytest.mark.parametrize(
    ("word", "of"), [("UNALLOCATED", "costs without an identity"), ("UNTAGGED", "rows without a tag")]
)
def test_reserved_names(word: str, of: str) -> None:
    """Reserved names are refused as values, wherever they occur; a stored document keeps them, with a warning."""
    document = {
        "default": word,
        "values": {"a": {"parent": word}, word: None},
        "rules": [
            {"match": {"identity": "x"}, "assign": word},
            {"match": {"identity": "x"}, "split": {"a": "50", word: "50"}},
        ],
        "share": [{"from": "a", "by": {"fixed": {word: "100"}}}],
    }
    sentence = f"{word} stands for {of}, which would be added to those of the value; choose another name"
    places = (f"values.{word}", "default", "values.a.parent", "rules[0].assign", f"rules[1].split.{word}")
    with pytest.raises(CategoryError) as refused:
        parse_category("team", document)
    assert {(each.path, each.message) for each in refused.value.problems} == {
        (place, sentence) for place in (*places, f"share[0].by.fixed.{word}")
    }
    stored = parse_category("team", document, is_stored=True)
    assert warnings_of(stored) == [CategoryProblem("default", sentence)]
