"""The keys of a settings model, for suggestions and for the reference of the configuration."""

from __future__ import annotations

from collections.abc import Iterator
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo


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
