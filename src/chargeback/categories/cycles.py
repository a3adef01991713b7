"""Cycles of names that refer to each other: of parents, and of steps that hand on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence


def cycles(targets: Mapping[str, Sequence[str]]) -> Iterator[list[str]]:
    """Yield at least one cycle of a graph, {name: its targets}, if there is any; each ends where it begins.

    >>> list(cycles({"a": ["b"], "b": ["c", "a"], "c": []}))
    [['a', 'b', 'a']]
    """
    done: set[str] = set()
    for start in targets:
        yield from _cycles_from(start, targets, done)


def _cycles_from(start: str, targets: Mapping[str, Sequence[str]], done: set[str]) -> Iterator[list[str]]:
    """Walk depth first, without recursion: chains of parents may be long."""
    path: dict[str, Iterator[str]] = {}
    following: str | None = start
    while following is not None:
        if following in path:
            names = list(path)
            yield [*names[names.index(following) :], following]
        elif following not in done:
            path[following] = iter(targets.get(following, ()))
        following = None
        while path and following is None:
            name = next(reversed(path))
            if (following := next(path[name], None)) is None:
                path.pop(name)
                done.add(name)


def arrow_path(names: Sequence[str]) -> str:
    """Return a path for a message; the middle of a long one is left out.

    >>> arrow_path(["a", "b", "a"])
    'a → b → a'
    """
    return " → ".join(names if len(names) <= 12 else [*names[:6], "…", *names[-5:]])
