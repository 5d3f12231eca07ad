"""Tell which state of the catalog a collection of an engine was written for.

A number of a change does not tell it: a catalog that was restored from a dump counts on from there.
So every few seconds in which something changed a random epoch is written into the catalog, and then
into each collection. A collection may be one epoch late. One with an epoch that the catalog does
not know was written for another state: the catalog was restored, or the engine was.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from secrets import token_hex

from app.storage.catalog.database import Database
from app.storage.catalog.schema import meta_value, put_meta

KEY = "epoch"
"""In the table `meta`."""


@dataclass(frozen=True, slots=True)
class Epoch:
    """What the catalog says of its state."""

    now: str = ""
    """Empty before the first."""
    before: str = ""
    change: int = 0
    """The newest change when it began."""

    def knows(self, held: str) -> bool:
        """Return whether a collection with this epoch, empty: none yet, is of this catalog."""
        return held in {"", self.now, self.before}


def epoch_in(value: str | None) -> Epoch:
    """Return the epoch of a value of the table `meta`."""
    return Epoch(*json.loads(value)) if value else Epoch()


def epoch_of(database: Database) -> Epoch:
    """Return the epoch now; read what a collection holds before, not after."""
    return epoch_in(database.meta(KEY))


def begin_epoch(database: Database, last: Epoch, change: int) -> Epoch:
    """Begin the epoch after `last` at a change; return it, or that of who was faster."""
    with database.write_apart("epoch") as sql:
        database.lock_in(sql, KEY)
        now = epoch_in(meta_value(sql, KEY))
        if now == last:
            now = Epoch(token_hex(8), last.now, change)
            put_meta(sql, KEY, json.dumps([now.now, now.before, now.change]))
    return now
