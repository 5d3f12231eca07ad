"""The embedded model and the same one on Ollama."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from app.cli import doctor
from app.models.minilm import MiniLmEmbedder
from app.models.ollama import OllamaHost, OllamaWatch
from app.models.options import ProviderOptions
from app.models.selection import PROBES, Twins, choose_embedder, compare
from app.settings import Settings
from tests.fakes.ollama_double import DoubleModel, OllamaDouble
from tests.fakes.ollama_double.engine import ScriptedEngine

TWIN = DoubleModel("all-minilm:latest", "bert", 512, dimension=384)
OTHER = DoubleModel("other-minilm:latest", "bert", 512, dimension=384)
WIDE = DoubleModel("nomic-embed-text:latest", "nomic-bert", 2048, dimension=768)


class EmbeddedEngine(ScriptedEngine):
    """The embedded model's own weights, unrounded, behind the double."""

    def __init__(self, double: OllamaDouble, weights: MiniLmEmbedder) -> None:
        super().__init__(TWIN, double.next_script)
        self._weights = weights

    def vectors(
        self, texts: Sequence[str], limit: int, truncate: bool
    ) -> tuple[list[list[float]], list[int]] | None:
        return self._weights.embed_passages(texts).tolist(), [limit for _ in texts]


@pytest.fixture
def double(exact_minilm: MiniLmEmbedder) -> Iterator[OllamaDouble]:
    with OllamaDouble((TWIN, OTHER, WIDE)) as running:
        running.stand_behind(TWIN.name, EmbeddedEngine(running, exact_minilm))
        yield running


def test_the_same_weights_are_known_by_their_vectors(
    double: OllamaDouble, minilm: MiniLmEmbedder
) -> None:
    twins = Twins(OllamaHost(double.url), lambda: minilm)
    assert twins("all-minilm")
    asked = len(double.bodies("/api/embed"))
    assert twins("all-minilm")
    assert len(double.bodies("/api/embed")) == asked, "once for each name"
    assert not twins("other-minilm"), "the same dimension is not enough"
    double.requests.clear()
    assert not twins("nomic-embed-text")
    assert double.bodies("/api/embed") == [], "another dimension needs no vector"
    assert not twins("not-there")


def test_a_new_library_is_embedded_by_the_embedded_one_which_says_why(
    double: OllamaDouble, minilm: MiniLmEmbedder
) -> None:
    host = OllamaHost(double.url)
    watch = OllamaWatch(host, twin=Twins(host, lambda: minilm))
    auto = choose_embedder(ProviderOptions(embedding_model="all-minilm"), watch)
    assert auto.provider == "minilm"
    assert "'all-minilm' is the embedded model, which gives the same vectors" in auto.notice
    assert (
        choose_embedder(ProviderOptions(embedding_model="other-minilm"), watch).provider == "ollama"
    )
    named = ProviderOptions(embedding_model="all-minilm", embedding_provider="ollama")
    assert choose_embedder(named, watch).provider == "ollama", "a provider by name is taken"


def test_both_are_timed(double: OllamaDouble, minilm: MiniLmEmbedder) -> None:
    double.embed_ms = 5
    found = compare(minilm, minilm)
    assert found.same
    assert found.lowest == pytest.approx(1)
    assert found.embedded_per_s > 0
    assert len(set(PROBES)) == 20


def test_doctor_shows_both_speeds(double: OllamaDouble, tmp_path: Path) -> None:
    def detail(**values: object) -> str:
        chosen = Settings(
            _env_file=None,
            data_dir=tmp_path / "data",
            ollama_base_url=double.url,
            **values,  # type: ignore[arg-type]
        )
        (finding,) = [row for row in doctor.ollama(chosen) if row.what == "embedding"]
        return finding.detail

    double.embed_ms = 20
    said = detail(embedding_model="all-minilm")
    assert "all-minilm is the embedded model (cosines 0.99" in said
    speeds = re.search(r"embedded (\d+) passages a second, on Ollama (\d+)$", said)
    assert speeds is not None
    assert 0 < int(speeds[2]) <= 50, "20 ms a text"
    assert "is the embedded model" not in detail(embedding_model="nomic-embed-text")
