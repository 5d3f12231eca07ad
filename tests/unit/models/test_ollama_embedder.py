from __future__ import annotations

import numpy as np
import pytest

from app.core.errors import (
    Busy,
    DocuMindError,
    ModelNotInstalled,
    PassageTooLong,
    ProviderBadResponse,
    ProviderUnreachable,
)
from app.models.embedding import embedding_traits, over_estimate
from app.models.ollama import OllamaHost
from app.models.ollama_adapters import OllamaEmbedder
from app.models.retries import RunnerStopped
from tests.fakes.ollama_double import DoubleModel, Fault, OllamaDouble

EMBED = "/api/embed"
NOMIC = "nomic-embed-text"


def test_identity_is_confirmed_by_the_host(double: OllamaDouble, host: OllamaHost) -> None:
    embedder = OllamaEmbedder(host, NOMIC)
    identity = embedder.identity
    assert (identity.provider, identity.model, identity.dimension, identity.max_tokens) == (
        "ollama",
        NOMIC,
        768,
        2048,
    )
    assert identity.digest == double.models[1].digest
    assert (identity.query_prefix, identity.passage_prefix) == (
        "search_query: ",
        "search_document: ",
    )
    assert embedder.identity is identity
    assert len(double.bodies(EMBED)) == 1


def test_prefixes_batches_and_constant_options(double: OllamaDouble, host: OllamaHost) -> None:
    embedder = OllamaEmbedder(host, NOMIC)
    texts = [f"text {number}" for number in range(70)]
    rows = embedder.embed_passages(texts)
    np.testing.assert_allclose(
        rows[69], double.models[1].vector("search_document: text 69"), atol=1e-6
    )
    np.testing.assert_allclose(
        embedder.embed_query("q"), double.models[1].vector("search_query: q"), atol=1e-6
    )
    _, *batches, query = double.bodies(EMBED)
    assert [len(body["input"]) for body in batches] == [32, 32, 6]  # type: ignore[arg-type]  # lists of texts
    assert {body["truncate"] for body in batches} == {False}
    assert query["truncate"] is True
    assert double.reloads == 0
    assert embedder.embed_passages([]).shape == (0, 768)
    assert embedder.embed_passages([""]).shape == (1, 768)


def test_long_passages_are_refused_here_and_by_the_host(
    double: OllamaDouble, host: OllamaHost
) -> None:
    embedder = OllamaEmbedder(host, NOMIC)
    with pytest.raises(PassageTooLong, match=r"passage 1 .*has 3\d\d\d tokens.*2048; split it"):
        embedder.embed_passages(["short", "word " * 3000])
    assert embedder.embed_query("word " * 3000).shape == (768,)
    assert double.truncations == 1
    double.fail(
        EMBED,
        Fault("status", status=400, body='{"error":"the input length exceeds the context length"}'),
    )
    with pytest.raises(PassageTooLong, match="split it"):
        embedder.embed_passages(["short for the estimate"])


def test_windows(double: OllamaDouble, host: OllamaHost) -> None:
    double.models += [
        DoubleModel("big-embed", "bert", 8192, dimension=8),
        DoubleModel("all-minilm", "bert", 512, dimension=384),
    ]
    assert OllamaEmbedder(host, "big-embed").identity.max_tokens == 2048
    assert OllamaEmbedder(host, "all-minilm").identity.max_tokens == 256


@pytest.mark.parametrize(
    ("fault", "error", "message"),
    [
        (Fault("wrong_dimension"), ProviderBadResponse, "767 dimensions, expected 768"),
        (Fault("not_finite"), ProviderBadResponse, "finite"),
        (Fault("missing_vector"), ProviderBadResponse, "for 2 texts"),
        (
            Fault("status", status=400, body='{"error":"model runner has unexpectedly stopped"}'),
            RunnerStopped,
            "could not run",
        ),
        (
            Fault("status", status=400, body='{"error":"embedding contains NaN or Inf values"}'),
            ProviderBadResponse,
            "NaN",
        ),
        (Fault("status", status=503, body='{"error":"server busy"}'), Busy, "busy"),
        (Fault("close"), ProviderUnreachable, "broke the connection"),
        (Fault("reset"), ProviderUnreachable, "broke the connection"),
    ],
)
def test_faults(
    double: OllamaDouble, host: OllamaHost, fault: Fault, error: type[DocuMindError], message: str
) -> None:
    embedder = OllamaEmbedder(host, NOMIC)
    assert embedder.identity
    double.fail(EMBED, *[fault] * 3)
    with pytest.raises(error, match=message):
        embedder.embed_passages(["one", "two"])


def test_models_that_cannot(double: OllamaDouble, host: OllamaHost) -> None:
    with pytest.raises(ModelNotInstalled, match="ollama pull nope"):
        _ = OllamaEmbedder(host, "nope").identity
    with pytest.raises(ProviderBadResponse, match="cannot embed"):
        _ = OllamaEmbedder(host, "llama3.2").identity
    double.models.append(DoubleModel("shy", tells_capabilities=False))
    with pytest.raises(ProviderBadResponse, match="cannot embed"):
        _ = OllamaEmbedder(host, "shy").identity


def test_a_model_that_changed_its_dimension_is_refused(
    double: OllamaDouble, host: OllamaHost
) -> None:
    with pytest.raises(ProviderBadResponse, match="768 dimensions, expected 384"):
        _ = OllamaEmbedder(host, NOMIC, dimension=384).identity


def test_an_embedder_works_once_its_host_is_back(double: OllamaDouble, host: OllamaHost) -> None:
    embedder = OllamaEmbedder(host, NOMIC)
    double.fail("/api/show", Fault("status", status=502, body="bad gateway"))
    with pytest.raises(ProviderBadResponse):
        embedder.embed_query("q")
    assert embedder.embed_query("q").shape == (768,)


def test_traits_by_base_name() -> None:
    assert embedding_traits("registry.local/me/mxbai-embed-large:335m").query_prefix.startswith(
        "Represent this"
    )
    assert embedding_traits("unheard-of").passage_prefix == ""


def test_the_estimate_counts_what_falls_back_to_bytes() -> None:
    assert over_estimate("") == 2
    assert over_estimate("sea") == 3
    assert over_estimate("2026!") == 7
    assert over_estimate("日本") == 8
