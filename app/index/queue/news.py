"""Hear of changes in other processes: LISTEN and NOTIFY of PostgreSQL."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Mapping
from typing import Any, Literal, cast

import psycopg
from sqlalchemy import Connection, text

from app.core.ports.shared_jobs import News

logger = logging.getLogger(__name__)

CHANNEL = "documind_jobs"
"""Channels belong to the database: two catalogs in it hear of each other's jobs, which they do not
have."""
_TELL = text("SELECT pg_notify(:channel, :what)")


def tell(sql: Connection, kind: Literal["state", "progress"], job_id: str) -> None:
    """Tell every process of a change, when the transaction is committed."""
    sql.execute(_TELL, {"channel": CHANNEL, "what": f"{kind} {job_id}"})


def listen(
    address: str, connecting: Mapping[str, Any], closing: threading.Event, poll_s: float
) -> Iterator[News]:
    """Yield changes until `closing`, and something at least every `poll_s` seconds.

    A lost connection is made again; what went by in between is said by `lost`.
    """
    while not closing.is_set():
        try:
            with psycopg.connect(address, autocommit=True, **connecting) as connection:
                connection.execute(f"LISTEN {CHANNEL}")
                yield News("lost")  # of what happened before, nothing was heard
                while not closing.is_set():
                    for note in connection.notifies(timeout=poll_s):
                        yield _news(note.payload)
                    yield News("quiet")
        except psycopg.Error as exc:
            logger.warning("changes of jobs are polled until PostgreSQL answers again: %s", exc)
            yield News("lost")
            closing.wait(poll_s)


def _news(payload: str) -> News:
    kind, _, job_id = payload.partition(" ")
    return News(cast("Literal['state', 'progress']", kind), job_id)
