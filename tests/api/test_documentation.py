"""The description of endpoints comes from the models that read them."""

from __future__ import annotations

from chargeback.access.caller import Right
from chargeback.api.authorisation import RequiredAccess
from chargeback.api.documentation import add_parameters, described
from chargeback.api.routes.aggregate import AggregateQuery


def test_parameters_are_those_of_the_model() -> None:
    """Every field is a parameter, and none is nullable, because a parameter is either sent or omitted."""
    documented = described(RequiredAccess(Right.READ), query=AggregateQuery)
    add_parameters()
    parameters = documented["openapi_extra"]["parameters"]
    names = [parameter["name"] for parameter in parameters]
    assert names[-3:] == ["tag:<key>", "category:<key>", "not.<filter>"]
    assert {"page", "timezone", "group_by", "time_bucket"} < set(names)
    assert "null" not in str(parameters)
    (unit,) = [parameter["schema"] for parameter in parameters if parameter["name"] == "time_bucket"]
    assert unit == {"default": "day", "enum": ["hour", "day", "week", "month", "all"], "type": "string"}
