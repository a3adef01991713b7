"""Converts pydantic's errors to sentences that say what to change, without showing a value.

The keys of the settings models are used for suggestions, and for the reference of the configuration.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from chargeback.config.document import Document, KeyPath
from chargeback.errors import ConfigProblem, ConfigurationError

_MESSAGES = {
    "missing": "this key is required",
    "string_type": "should be a string; quote numbers and dates",
    "int_type": "should be a whole number",
    "int_parsing": "should be a whole number",
    "int_from_float": "should be a whole number",
    "bool_type": "should be true or false",
    "bool_parsing": "should be true or false",
    "list_type": "should be a list",
    "dict_type": "should be a mapping of keys",
    "model_type": "should be a mapping of keys",
    "model_attributes_type": "should be a mapping of keys",
    "greater_than_equal": "should be at least {ge}",
    "greater_than": "should be above {gt}",
    "less_than_equal": "should be at most {le}",
    "less_than": "should be below {lt}",
    "literal_error": "should be one of {expected}",
    "string_too_short": "should not be empty",
    "string_too_long": "should have at most {max_length} characters",
    "string_pattern_mismatch": "should match {pattern}",
}


def models_in(annotation: Any) -> list[type[BaseModel]]:
    """Return the models that a value of this annotation may be or contain (one level down)."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    if get_origin(annotation) in {Annotated, Union, UnionType, list, tuple, dict}:
        return [model for each in get_args(annotation) for model in models_in(each)]
    return []


def model_at(model: type[BaseModel], key_path: tuple[str | int, ...]) -> type[BaseModel] | None:
    """Return the model of the mapping at ``key_path`` below a value of ``model``, or None if it has no model.

    Positions in lists, keys of mappings without a model, and tags of unions are skipped.
    """
    current: type[BaseModel] | None = model
    candidates: list[type[BaseModel]] = [model]
    for step in key_path:
        field = next((each.model_fields[str(step)] for each in candidates if str(step) in each.model_fields), None)
        if field is not None:
            candidates = models_in(field.annotation)
            current = candidates[0] if candidates else None
    return current


def walk(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, FieldInfo]]:
    """Yield the dotted path and the field of every key of a model; ``[]`` stands for a position in a list, ``<name>``
    for a key that the user chooses."""
    for name, info in model.model_fields.items():
        path = f"{prefix}{name}"
        yield path, info
        for inner in models_in(info.annotation):
            yield from walk(inner, f"{path}{_step(info.annotation)}.")


def _step(annotation: Any) -> str:
    origin = get_origin(annotation)
    if origin in {list, tuple}:
        return "[]"
    if origin is dict:
        return ".<name>"
    if origin in {Annotated, Union, UnionType}:
        return next((step for each in get_args(annotation) if (step := _step(each))), "")
    return ""


def problems_of(
    error: ValidationError, document: Document, base: KeyPath, model: type[BaseModel], values: Any
) -> list[ConfigProblem]:
    """Return every mistake that ``model`` found in ``values``, which are at ``base`` in the document."""
    found: dict[ConfigProblem, None] = {}
    for details in error.errors(include_url=False, include_input=False):
        key_path = (*base, *_actual_location(details["loc"], values))
        for at, message in _messages(details, key_path, model, base, document):
            found[document.problem(at, message)] = None
    return list(found)


def _actual_location(location: Iterable[str | int], values: Any) -> Iterator[str | int]:
    """Yield the location without the steps that pydantic adds (the branch of a union, ``[key]``)."""
    steps = list(location)
    for position, step in enumerate(steps):
        inside = isinstance(values, dict) and step in values
        listed = isinstance(values, list) and isinstance(step, int) and step < len(values)
        if inside or listed:
            yield step
            values = values[step]
        elif isinstance(values, dict) and position == len(steps) - 1:
            yield step


def _messages(
    details: ErrorDetails, key_path: KeyPath, model: type[BaseModel], base: KeyPath, document: Document
) -> Iterator[tuple[KeyPath, str]]:
    context = details.get("ctx", {})
    kind = details["type"]
    if kind == "extra_forbidden":
        yield key_path, unknown_key(str(key_path[-1]), model_at(model, key_path[len(base) : -1]))
    elif kind == "value_error" and isinstance(nested := context["error"].__context__, ConfigurationError):
        for problem in nested.problems:  # from a parser of its own: its paths start at the field
            at = document.key_path_of(problem.path, key_path[:-1])
            yield at, hide_values(problem.message, at, document)
    elif kind == "value_error":
        yield key_path, hide_values(str(context["error"]), key_path, document)
    elif kind in _MESSAGES:
        yield key_path, _MESSAGES[kind].format(**context)
    else:
        yield key_path, hide_values(details["msg"].replace("Input should", "should"), key_path, document)


def unknown_key(name: str, model: type[BaseModel] | None) -> str:
    """Return the message that ``name`` is not a key of ``model``, with the key that was probably meant."""
    return "unknown key" + suggestion(name, model.model_fields if model else ())


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return ``; did you mean …?``, or an empty text if no known name is similar."""
    near = get_close_matches(name, list(known), n=1)
    return f"; did you mean {near[0]}?" if near else ""


def hide_values(message: str, key_path: KeyPath, document: Document) -> str:
    """Return a message that may quote values, without the value at its place and without values of the environment.

    A value may be a secret under a wrong key, so none is shown; a variable is shown by its name. A match that is only
    the beginning of a longer word remains: that word is a name that the message suggests.
    """
    for at, taken in document.taken.items():
        if at[: len(key_path)] == key_path or key_path[: len(at)] == at:
            whole = document.at(at)
            for name, value in taken:
                message = _replace_value(message, value, f"${{{name}}}", as_word=value == whole)
    written = document.at(key_path)
    return _replace_value(message, written, "the value", as_word=True) if isinstance(written, str) else message


def _replace_value(message: str, value: str, instead: str, *, as_word: bool) -> str:
    """Return the message with ``instead`` in place of a value; with ``as_word``, only where the value is a whole
    word."""
    if len(value) < 3:
        return message
    message = message.replace(repr(value), instead)
    if not as_word:
        return message.replace(value, instead)
    return re.sub(rf"(?<!\w){re.escape(value)}(?!\w)", lambda _: instead, message)
