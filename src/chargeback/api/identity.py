"""What somebody trustworthy says about the sender of a request."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Final, Self

from starlette.requests import Request

from chargeback.access.caller import ANONYMOUS
from chargeback.api.problems import Unauthenticated
from chargeback.store.control.audit import COMMAND_LINE

#: How the names of tokens begin in the audit log; no user's name does.
TOKEN_NAME: Final = "token:"  # noqa: S105 - not a secret

_MAX_LENGTH: Final = 255
_MAX_GROUPS: Final = 1000
_OUR_OWN: Final = frozenset({ANONYMOUS, COMMAND_LINE})


@dataclass(frozen=True)
class Identity:
    """The name of a user, and of the user's groups."""

    user: str
    groups: tuple[str, ...] = ()

    @classmethod
    def of(cls, user: str, groups: Iterable[str] = ()) -> Self:
        """Return the identity, if its names can be told apart from others and from what this service writes itself.

        Raises:
            Unauthenticated: they cannot.
        """
        name, found = user.strip(), tuple(each for group in groups if (each := group.strip()))
        if not name or name in _OUR_OWN or name.startswith(TOKEN_NAME):
            raise Unauthenticated(f"{name!r} cannot be the name of a user.")
        if any(len(each) > _MAX_LENGTH or not each.isprintable() for each in (name, *found)):
            raise Unauthenticated(
                f"The name of the user or of a group has more than {_MAX_LENGTH} characters, or some that cannot be "
                "shown."
            )
        if len(found) > _MAX_GROUPS:
            raise Unauthenticated(
                f"The user is in {len(found):,} groups, more than {_MAX_GROUPS:,}; let the identity provider send only "
                "those that access.roles names."
            )
        return cls(name, found)


#: Returns the identity of who sends a request, given the bearer token of the request, if it has one.
Identify = Callable[[Request, str | None], Awaitable[Identity]]
