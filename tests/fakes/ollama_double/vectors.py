"""`/api/embed` and `/api/embeddings`."""

from __future__ import annotations

import json
import math
from datetime import timedelta
from typing import Any

from tests.fakes.ollama_double.models import DoubleModel
from tests.fakes.ollama_double.protocol import (
    Refused,
    check_options,
    check_types,
    keep_alive,
    name_in,
)
from tests.fakes.ollama_double.wire import Fields, Wire


class VectorEndpoints(Wire):
    """Unit vectors of texts, many or one."""

    def embed(self, body: Fields) -> None:
        fault = self._fault_before_body()
        if fault is not None and fault.kind in {"status", "redirect"}:
            return
        check_types(body, "EmbedRequest")
        model, name, options, stay = self._model(body, empty=Refused(404, "model '' not found"))
        texts = _texts(body.get("input"))
        window = self.server.load(model, name, options.get("num_ctx"), None, stay)
        if not texts:
            self._json(200, {"model": body["model"], "embeddings": []})
            return
        self._sleep(self.server.embed_ms / 1000 * len(texts))
        rows, counts = self._vectors(model, texts, window, body.get("truncate") is not False)
        if fault is not None:
            rows = self._spoil(rows, fault)
        size = body.get("dimensions")
        rows = [_sliced(row, int(size)) if isinstance(size, int | float) else row for row in rows]
        reply = {
            "model": body["model"],
            "embeddings": rows,
            "total_duration": 1_000_000,
            "load_duration": 500_000,
        }
        reply["prompt_eval_count"] = sum(counts)
        if fault is not None and fault.kind in {"reset", "close"}:
            self._cut(json.dumps(reply).encode(), fault)
            return
        self._json(200, reply)

    def embeddings(self, body: Fields) -> None:
        check_types(body, "EmbeddingRequest")
        model, name, options, stay = self._model(body, empty=Refused(400, "model is required"))
        window = self.server.load(model, name, options.get("num_ctx"), None, stay)
        prompt = str(body.get("prompt") or "")
        if not prompt:
            self._json(200, {"embedding": []})
            return
        try:
            (row,), _ = self._vectors(model, [prompt], window, truncate=False)
        except Refused as refused:
            raise Refused(500, refused.message) from refused
        self._json(200, {"embedding": row})

    def _model(
        self, body: Fields, *, empty: Refused
    ) -> tuple[DoubleModel, str, dict[str, Any], timedelta | None]:
        name = name_in(body, empty=empty, fields=("model",))
        model = self.server.find(name)
        if model is None:
            raise Refused(404, f'model "{name}" not found, try pulling it first')
        options: dict[str, Any] = dict(body.get("options") or {})  # type: ignore[call-overload]  # checked
        check_options(options)
        if model.dimension is None and self.server.since(0, 30, 0):
            raise Refused(
                501,
                "This server does not support embeddings. Start it with `--embeddings`",
                of_runner=True,
            )
        return model, name, options, keep_alive(body.get("keep_alive"))

    def _vectors(
        self, model: DoubleModel, texts: list[str], window: int, truncate: bool
    ) -> tuple[list[list[float]], list[int]]:
        limit = window - 2
        with self.server.turn(model):
            engine = self.server.engine(model)
            found = engine.vectors(texts, limit, truncate)
        if found is None:
            raise Refused(400, "the input length exceeds the context length")
        if any(count >= limit + 2 for count in found[1]):
            with self.server.lock:
                self.server.truncations += 1
        return found


def _texts(value: object) -> list[str]:
    if value is None or value in ("", []):
        return []
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise Refused(400, "invalid input type")
    return texts


def _sliced(row: list[float], size: int) -> list[float]:
    if not 0 < size < len(row):
        return row
    norm = math.sqrt(sum(value * value for value in row[:size])) or 1.0
    return [value / norm for value in row[:size]]
