"""Say what a caller may do: the scopes and the libraries of its key."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Literal, get_args

from app.core.errors import DocuMindError, Forbidden, InOtherLibrary, NotFound
from app.core.vocabulary import Library, Scope

KeyScope = Literal["read", "ask", "write", "admin"]
"""read: documents and search; ask: answers, checks, conversations; write: what changes documents;
admin: all of these, keys, models and upkeep."""

FIRST_KEY = (
    "this is the first key: from then on the page, /api/v1, /v1 and /mcp ask every request for a"
    " key; commands by those who may read DATA_DIR go on without one"
)
LAST_KEY = "this is the last key: without it everything is open to all who reach this server"


@dataclass(frozen=True, slots=True)
class Caller:
    """The sender of a request, by its key."""

    name: str
    """Of the key; in parentheses for one that is not kept."""
    scopes: frozenset[KeyScope] = frozenset(get_args(KeyScope))
    libraries: frozenset[Library] = frozenset(Library)

    def may(self, scope: KeyScope) -> bool:
        return scope in self.scopes or "admin" in self.scopes

    @property
    def sees_all(self) -> bool:
        return self.libraries == frozenset(Library)

    def require(self, scope: KeyScope, *, every_library: bool) -> None:
        """Let the caller pass.

        Raises:
            Forbidden: The scope is missing, or a library is that the request may touch.
        """
        if not self.may(scope):
            raise Forbidden(
                f"the key {self.name!r} lacks the scope {scope!r}; it has"
                f" {', '.join(sorted(self.scopes))}"
            )
        if every_library and not self.sees_all:
            raise Forbidden(
                f"the key {self.name!r} is limited to {self._named()}; this needs a key for every"
                " library"
            )

    def library(self, named: Library) -> Library:
        """Return a library that was asked for.

        Raises:
            Forbidden: The key is limited to another.
        """
        if named not in self.libraries:
            raise Forbidden(
                f"the key {self.name!r} is limited to {self._named()}; it may not use"
                f" {named.value!r}"
            )
        return named

    def default(self, library: Library) -> Library:
        """Return where a request goes that names no library: as configured, if it may."""
        return library if library in self.libraries else min(self.libraries)

    def within(self, named: Scope) -> Scope:
        """Return what is seen of the libraries that were asked for; `all` is what it may see.

        Raises:
            Forbidden: The key is limited to another.
        """
        if named != "all":
            return self.library(Library(named)).value
        return "all" if self.sees_all else min(self.libraries).value

    def heard(self, error: DocuMindError) -> DocuMindError:
        """Return an error as the caller may hear it: also where else a document is, if it may."""
        if isinstance(error, InOtherLibrary) and self.sees_all:
            return NotFound(error.elsewhere)
        return error

    def _named(self) -> str:
        return " and ".join(sorted(self.libraries))


def digest_of(key: bytes) -> str:
    """Return what is kept of a key; keys are random, so it tells nothing about them."""
    return hashlib.sha256(key).hexdigest()
