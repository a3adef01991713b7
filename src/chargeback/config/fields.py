"""The keys that a settings model knows: for suggestions, and for the page of the documentation that lists them."""

from __future__ import annotations

from collections.abc import Iterator
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo


def models_in(annotation: Any) -> list[type[BaseModel]]:
    """The models that a value of this annotation may be or contain (one level down)."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    if get_origin(annotation) in {Annotated, Union, UnionType, list, tuple, dict}:
        return [model for each in get_args(annotation) for model in models_in(each)]
    return []


def model_at(model: type[BaseModel], key_path: tuple[str | int, ...]) -> type[BaseModel] | None:
    """The model of what stands at ``key_path`` below a value of ``model``; none where it is no mapping of ours.

    Positions in lists, keys of free mappings and tags of unions are stepped over.
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
    """Every key of a model with its field, by its dotted path; ``[]`` stands for a position in a list, ``<name>``
    for a key of one's own choice."""
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
