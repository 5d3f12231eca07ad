"""The real application over the sample documents, with vectors that do not depend on the machine."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest
from starlette.testclient import TestClient

from app.api.app import create_app
from app.api.deps import AppState
from app.core.types import FloatArray, PassageCode, QuestionCode
from app.core.vectors import l2_normalise
from app.models.minilm import MiniLmEmbedder
from app.settings import Settings
from tests.fakes.embedders import HashEmbedder
from tests.fakes.encoders import HashEncoder

BASE = "http://127.0.0.1:8001"
DIMENSION = 384


@dataclass
class StoredVectors:
    """Vectors of texts as signed bytes by the SHA-256 of the text.

    A processor's own rounding moves a vector by less than a step of these, so that the same
    answers are expected on every machine.
    """

    path: Path
    rows: dict[bytes, np.ndarray] = field(default_factory=dict)
    writing: bool = False
    used: set[bytes] = field(default_factory=set)

    @classmethod
    def read(cls, path: Path) -> StoredVectors:
        """Return the vectors of a file that `write` made."""
        with np.load(path, allow_pickle=False) as held:
            keys, rows = held["keys"], held["rows"]
        return cls(path, {key.tobytes(): row for key, row in zip(keys, rows, strict=True)})

    def write(self) -> None:
        """Keep the vectors that were used."""
        keys = sorted(self.used)
        np.savez_compressed(
            self.path,
            keys=np.frombuffer(b"".join(keys), dtype=np.uint8).reshape(len(keys), 32),
            rows=np.stack([self.rows[key] for key in keys]),
        )

    def of(self, texts: Sequence[str], made: FloatArray | None) -> FloatArray:
        """Return float32 `[n, 384]` of L2 norm 1; `made` are the model's own, for new texts."""
        keys = [hashlib.sha256(text.encode()).digest() for text in texts]
        if made is not None:
            for key, row in zip(keys, made, strict=True):
                self.rows.setdefault(key, np.rint(row * 127 / np.abs(row).max()).astype(np.int8))
        self.used.update(keys)
        missing = [text for key, text in zip(keys, texts, strict=True) if key not in self.rows]
        assert not missing, f"no stored vector of {missing[0]!r}; run: python -m tests.fence"
        found = np.stack([self.rows[key] for key in keys]) if keys else np.empty((0, DIMENSION))
        return l2_normalise(found.astype(np.float32))


@dataclass(frozen=True)
class FenceServer:
    """A running application and how to ask it."""

    client: TestClient
    edge: AppState


@contextmanager
def stored_embedder(vectors: StoredVectors) -> Iterator[None]:
    """Let the embedded model return stored vectors; while they are written, make new ones.

    Codes of tokens are hashed stems: their bits would be another machine's too.
    """
    passages, query = MiniLmEmbedder.embed_passages, MiniLmEmbedder.embed_query
    sentences, question = MiniLmEmbedder.embed_and_encode, MiniLmEmbedder.encode_question
    hashed = HashEncoder(HashEmbedder())

    def embed_passages(model: MiniLmEmbedder, texts: Sequence[str]) -> FloatArray:
        made = passages(model, texts) if vectors.writing else None
        return vectors.of(texts, made)

    def embed_query(model: MiniLmEmbedder, text: str) -> FloatArray:
        made = query(model, text)[None, :] if vectors.writing else None
        row: FloatArray = vectors.of([text], made)[0]
        return row

    def embed_and_encode(
        model: MiniLmEmbedder, texts: Sequence[str]
    ) -> tuple[FloatArray, list[PassageCode]]:
        made = sentences(model, texts)[0] if vectors.writing else None
        return vectors.of(texts, made), hashed.encode(texts)

    def encode_question(model: MiniLmEmbedder, text: str) -> QuestionCode:
        made = question(model, text).vector[None, :] if vectors.writing else None
        return replace(hashed.encode_question(text), vector=vectors.of([text], made)[0])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MiniLmEmbedder, "embed_and_encode", embed_and_encode)
        patch.setattr(MiniLmEmbedder, "encode_question", encode_question)
        patch.setattr(MiniLmEmbedder, "embed_passages", embed_passages)
        patch.setattr(MiniLmEmbedder, "embed_query", embed_query)
        yield


@contextmanager
def fence_server(**values: object) -> Iterator[FenceServer]:
    """Run the application on an empty data directory and loopback only, until it is ready."""
    with tempfile.TemporaryDirectory() as folder:
        given = {
            "ollama_base_url": "http://127.0.0.1:9",
            "samples": False,
            "late_interaction_max_chunks": 0,
            "model_threads": 1,
            **values,
        }
        settings = Settings(_env_file=None, data_dir=Path(folder) / "data", **given)  # type: ignore[arg-type]
        app = create_app(settings, on_failure=lambda _: None)
        with TestClient(app, base_url=BASE) as client:
            assert app.state.edge.startup.wait(120)
            yield FenceServer(client, app.state.edge)
