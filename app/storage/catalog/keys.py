"""Keep API keys: their digests and what they may do, never the keys themselves."""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections.abc import Collection
from dataclasses import dataclass, replace

from sqlalchemy import delete, or_, select, update

from app.core.access import Caller, KeyScope, digest_of
from app.core.errors import Conflict, NotFound
from app.core.types import Library
from app.storage.catalog.database import Database
from app.storage.catalog.schema import keys
from app.storage.files.durable import utc_now

FRESH_S = 5.0
"""A key that another server made or revoked counts here after at most this many seconds."""


@dataclass(frozen=True, slots=True)
class Key:
    """A key as it is kept."""

    caller: Caller
    digest: str
    created_at: str
    used_at: str | None


class KeyStore:
    """The keys of a catalog, held in memory.

    When a key was used is written by `flush` alone: no request writes it.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._held: tuple[Key, ...] | None = None
        self._read_at_s = 0.0
        self._used: dict[str, str] = {}
        self._reading = threading.Lock()
        """A reader that began before a key was revoked does not bring it back."""

    def held(self) -> tuple[Key, ...] | None:
        """Return the keys without reading them; None once they have to be read."""
        fresh = time.monotonic() - self._read_at_s < FRESH_S
        return self._held if fresh else None

    def read(self) -> tuple[Key, ...]:
        """Return the keys by name, as they are in the catalog now."""
        with self._reading:
            self._read_at_s = time.monotonic()
            rows = self._database.rows(select(keys).order_by(keys.c.name))
            self._held = tuple(
                Key(
                    Caller(
                        row.name,
                        frozenset(json.loads(row.scopes)),
                        frozenset(map(Library, json.loads(row.libraries))),
                    ),
                    row.digest,
                    row.created_at,
                    row.used_at,
                )
                for row in rows
            )
            return self._held

    def list(self) -> tuple[Key, ...]:
        """Return the keys by name; when they were used includes what is not written yet."""
        return tuple(
            replace(key, used_at=self._used.get(key.caller.name, key.used_at))
            for key in self.read()
        )

    def add(
        self, name: str, scopes: Collection[KeyScope], libraries: Collection[Library]
    ) -> tuple[str, Key]:
        """Make a key; return it, which nothing can show again, and what is kept.

        Raises:
            Conflict: There is a key of this name.
        """
        key = f"dm_{secrets.token_urlsafe(32)}"
        row = {
            "name": name,
            "digest": digest_of(key.encode()),
            "scopes": json.dumps(sorted(scopes)),
            "libraries": json.dumps(sorted(libraries)),
            "created_at": utc_now(),
        }
        try:
            with self._database.write("keys") as sql:
                if sql.execute(select(keys.c.name).where(keys.c.name == name)).first():
                    raise Conflict(f"there is a key {name!r} already; revoke it, or use a new name")
                sql.execute(keys.insert().values(row))
        finally:
            self._read_at_s = 0.0
        return key, next(one for one in self.read() if one.caller.name == name)

    def revoke(self, name: str) -> Key:
        """Forget a key, which opens nothing from now on.

        Raises:
            NotFound: There is none of this name.
        """
        gone = next((one for one in self.list() if one.caller.name == name), None)
        if gone is None:
            raise NotFound(f"there is no key {name!r}; `documind keys list` names them")
        with self._database.write("keys") as sql:
            sql.execute(delete(keys).where(keys.c.name == name))
        self._used.pop(name, None)
        self.read()
        return gone

    def use(self, name: str) -> None:
        self._used[name] = utc_now()

    def flush(self) -> None:
        """Write when keys were used."""
        used, self._used = self._used, {}
        if used:
            with self._database.write("keys") as sql:
                for name, at in used.items():
                    older = or_(keys.c.used_at.is_(None), keys.c.used_at < at)
                    sql.execute(update(keys).where(keys.c.name == name, older).values(used_at=at))
