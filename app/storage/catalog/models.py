"""What is known of models: calibrations of embedders, speeds and tests of chat models."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from sqlalchemy import select

from app.core.types import ModelFindings, ModelSpeed
from app.storage.catalog.database import Database, SinceCommit
from app.storage.catalog.schema import model_speeds, model_tests, put, put_meta
from app.storage.files.durable import utc_now

# Calibrations of embedders, kept in the catalog by the embedder's key.

_PREFIX = "calibration:"
"""Of the keys in the table `meta`."""


class CalibrationRows:
    """Reads and writes rows; thread-safe."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._held = SinceCommit(database, self._read)

    def get(self, key: str) -> Mapping[str, float] | None:
        """Return the row of an embedder, None when there is none."""
        return self._held(key)

    def put(self, key: str, row: Mapping[str, float]) -> None:
        """Store a row durably, replacing any earlier one.

        Raises:
            DiskFull: No space; the row before stays.
        """
        with self._database.write("meta") as sql:
            put_meta(sql, _PREFIX + key, json.dumps(dict(row)))

    def _read(self, key: str) -> Mapping[str, float] | None:
        found = self._database.meta(_PREFIX + key)
        return json.loads(found) if found else None


# Store facts about models in the catalog.

_CHOSEN_KEY = "chosen_model"
"""Of the table `meta`."""


class ModelStore:
    """Keeps measurements and findings about models across restarts."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def speed(self, host: str, model: str) -> ModelSpeed | None:
        """Return how fast a model works on a host, None before it was measured."""
        found = select(model_speeds.c.reading, model_speeds.c.writing).where(
            model_speeds.c.host == host, model_speeds.c.model == model
        )
        rows = self._database.rows(found)
        return ModelSpeed(*rows[0]) if rows else None

    def keep_speed(self, host: str, model: str, speed: ModelSpeed) -> None:
        row = {"host": host, "model": model, "updated_at": utc_now(), **asdict(speed)}
        with self._database.write_apart("model") as sql:
            put(sql, model_speeds, [row])

    def findings(self, digest: str) -> ModelFindings | None:
        """Return what the test of a model found, None before it was tested."""
        kept = select(model_tests.c.findings).where(model_tests.c.digest == digest)
        rows = self._database.rows(kept)
        return ModelFindings(**json.loads(rows[0].findings)) if rows else None

    def keep_findings(self, digest: str, model: str, findings: ModelFindings) -> None:
        row = {"digest": digest, "model": model, "at": findings.at}
        with self._database.write_apart("model") as sql:
            put(sql, model_tests, [row | {"findings": json.dumps(asdict(findings))}])

    def tested(self) -> Sequence[tuple[str, ModelFindings]]:
        """Return names and findings of all tested models, newest first."""
        kept = select(model_tests.c.model, model_tests.c.findings)
        rows = self._database.rows(kept.order_by(model_tests.c.at.desc(), model_tests.c.model))
        return [(row.model, ModelFindings(**json.loads(row.findings))) for row in rows]

    def chosen(self) -> str:
        """Return the model that was chosen to answer; empty for none."""
        return self._database.meta(_CHOSEN_KEY) or ""

    def choose(self, model: str) -> None:
        """Keep which model answers from now on; empty: none is chosen."""
        with self._database.write_apart("model") as sql:
            put_meta(sql, _CHOSEN_KEY, model)
