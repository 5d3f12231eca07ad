"""Store facts about models in the catalog."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

from sqlalchemy import delete, insert, select

from app.core.types import ModelFindings, ModelSpeed
from app.index.catalog.database import Database
from app.index.catalog.statements import meta_value, put_meta
from app.index.catalog.work_schema import model_speeds, model_tests
from app.index.files.durable import utc_now

_CHOSEN_KEY = "chosen_model"
"""Of the table `meta`."""


class CatalogModelStore:
    """The ModelStore port on the catalog."""

    def __init__(self, database: Database) -> None:
        """Keep what is learned in `database`."""
        self._database = database

    def speed(self, host: str, model: str) -> ModelSpeed | None:
        """Return how fast a model works on a host, None before it was measured."""
        found = select(model_speeds.c.reading, model_speeds.c.writing).where(
            model_speeds.c.host == host, model_speeds.c.model == model
        )
        with self._database.read() as sql:
            row = sql.execute(found).first()
        return ModelSpeed(row.reading, row.writing) if row else None

    def keep_speed(self, host: str, model: str, speed: ModelSpeed) -> None:
        """Replace the speed of a model on a host."""
        mine = (model_speeds.c.host == host) & (model_speeds.c.model == model)
        with self._database.write("model") as sql:
            sql.execute(delete(model_speeds).where(mine))
            sql.execute(
                insert(model_speeds).values(
                    host=host, model=model, updated_at=utc_now(), **asdict(speed)
                )
            )

    def findings(self, digest: str) -> ModelFindings | None:
        """Return what the test of a model found, None before it was tested."""
        with self._database.read() as sql:
            kept = sql.execute(
                select(model_tests.c.findings).where(model_tests.c.digest == digest)
            ).scalar()
        return ModelFindings(**json.loads(kept)) if kept else None

    def keep_findings(self, digest: str, model: str, findings: ModelFindings) -> None:
        """Replace what the test of a model found."""
        row = {
            "digest": digest,
            "model": model,
            "findings": json.dumps(asdict(findings)),
            "at": findings.at,
        }
        with self._database.write("model") as sql:
            sql.execute(delete(model_tests).where(model_tests.c.digest == digest))
            sql.execute(insert(model_tests).values(row))

    def tested(self) -> Sequence[tuple[str, ModelFindings]]:
        """Return names and findings of all tested models, newest first."""
        rows = select(model_tests.c.model, model_tests.c.findings).order_by(
            model_tests.c.at.desc(), model_tests.c.model
        )
        with self._database.read() as sql:
            return [
                (row.model, ModelFindings(**json.loads(row.findings))) for row in sql.execute(rows)
            ]

    def chosen(self) -> str:
        """Return the model that was chosen to answer; empty for none."""
        with self._database.read() as sql:
            return meta_value(sql, _CHOSEN_KEY) or ""

    def choose(self, model: str) -> None:
        """Keep which model answers from now on; empty: none is chosen."""
        with self._database.write("model") as sql:
            put_meta(sql, _CHOSEN_KEY, model)
