"""API keys: list, make, revoke."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Query, Response
from pydantic import Field

from app.api.deps import AtEdge, Composition, changes_settings, needs_all
from app.api.errors import declared
from app.api.schemas.base import Flag, Reply, Request
from app.core.access import FIRST_KEY, LAST_KEY, KeyScope
from app.core.errors import Conflict
from app.core.types import Library, LibraryName

if TYPE_CHECKING:
    from app.storage.catalog.keys import Key

router = APIRouter(prefix="/api/v1/keys", tags=["keys"], responses=declared())
KeyName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$", examples=["laptop"])]


class NewKey(Request):
    """A key to make."""

    name: KeyName
    scopes: Annotated[list[KeyScope], Field(min_length=1, max_length=4)] = Field(
        description="what it may do; admin: everything"
    )
    libraries: Annotated[list[LibraryName], Field(max_length=2)] = Field(
        default_factory=list, description="all that it may use; empty: every library"
    )
    confirm: Flag = Field(
        False, description="of the first key: close the server to requests without a key"
    )


class KeyReply(Reply):
    """A key as it is kept; what opens with it is not."""

    name: str
    scopes: list[KeyScope]
    libraries: list[LibraryName]
    created_at: str
    used_at: str | None = Field(
        description="null: never; kept in memory, written every ten minutes and at the stop"
    )


class MadeKey(KeyReply):
    """A new key, which is shown this once."""

    key: str


class KeyList(Reply):
    """Keys by name."""

    keys: list[KeyReply]
    open: bool = Field(description="requests need no key: there is none, and no API_KEY")


def _values(key: Key) -> dict[str, object]:
    caller = key.caller
    return {
        "name": caller.name,
        "scopes": sorted(caller.scopes),
        "libraries": sorted(caller.libraries),
        "created_at": key.created_at,
        "used_at": key.used_at,
    }


@router.get("", **needs_all("admin"))
def list_keys(services: Composition, edge: AtEdge) -> KeyList:
    """Keys by name."""
    kept = [KeyReply.model_validate(_values(key)) for key in services.store.keys.list()]
    return KeyList(keys=kept, open=edge.key.is_open())


@router.post("", status_code=201, **changes_settings("conflict", "disk_full"))
def make_key(services: Composition, edge: AtEdge, wanted: NewKey, response: Response) -> MadeKey:
    """Make a key and show it, this once.

    The first one closes the server to requests without a key, which has to be confirmed.
    """
    if edge.key.is_open() and not wanted.confirm:
        raise Conflict(f"{FIRST_KEY}; send confirm: true to make it")
    libraries = {Library(name) for name in wanted.libraries} or set(Library)
    key, kept = services.store.keys.add(wanted.name, set(wanted.scopes), libraries)
    response.headers["Cache-Control"] = "no-store"
    return MadeKey.model_validate({**_values(kept), "key": key})


@router.delete("/{name}", **changes_settings("not_found", "conflict", "disk_full"))
def revoke_key(
    services: Composition,
    edge: AtEdge,
    name: KeyName,
    confirm: Annotated[bool, Query(description="of the last key: open the server")] = False,
) -> KeyReply:
    """Revoke a key: nothing opens with it any more."""
    keys = services.store.keys
    last = [key.caller.name for key in keys.read()] == [name]
    if last and not (confirm or edge.settings.api_key):
        raise Conflict(f"{LAST_KEY}; make another key first, or send confirm=true")
    return KeyReply.model_validate(_values(keys.revoke(name)))
