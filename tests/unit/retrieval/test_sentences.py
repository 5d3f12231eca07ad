"""Best-sentence reranking."""

from __future__ import annotations

import numpy as np
import pytest

from app.retrieval.sentences import best_sentence_similarities, with_sentences
from tests.fakes.embedders import HashEmbedder


def test_the_nearest_sentence_counts_not_the_passage() -> None:
    embedder = HashEmbedder(dimension=512)
    question = embedder.embed_query("Rollo led the Norse raiders")
    texts = [
        "Wheat was grown on the plain. Rollo led the Norse raiders. The winters were long.",
        "Rollo was old. The Norse sailed. Some raiders stayed.",
        "",
    ]
    found = best_sentence_similarities(question, texts, embedder)
    assert found[0] == pytest.approx(1.0, abs=1e-5)
    assert found[1] < found[0]
    assert np.isnan(found[2])
    assert len(embedder.embedded) == 6


def test_the_similarity_is_added_with_its_weight() -> None:
    fused, sentence = np.array([0.9, 0.3, 0.6]), np.array([0.2, 0.8, np.nan])
    assert with_sentences(fused, sentence, 0.5).tolist() == pytest.approx([1.0, 0.7, 0.6])
