"""Codes of the embedded model: the same vectors, whole rows, and a nearness that says what the model's own states say."""

from __future__ import annotations

import numpy as np
import pytest

from app.core.errors import PassageTooLong
from app.core.types import STATE_DIMENSION
from app.models.minilm import WINDOW, MiniLmEmbedder
from app.retrieval.candidates import QuestionWords
from app.retrieval.reranking import late_signals

TEXTS = ["Walruses whistle in the wind. They sleep on ice.", "Penguins parade past the pole."]


@pytest.fixture(scope="module")
def minilm() -> MiniLmEmbedder:
    return MiniLmEmbedder()


def test_vectors_are_those_of_the_embedder_bit_for_bit(minilm: MiniLmEmbedder) -> None:
    rows, codes = minilm.embed_and_encode(TEXTS)
    assert rows.tobytes() == minilm.embed_passages(TEXTS).tobytes()
    assert (
        minilm.encode_question(TEXTS[0]).vector.tobytes() == minilm.embed_query(TEXTS[0]).tobytes()
    )
    assert codes == minilm.encode(TEXTS)


def test_a_code_has_a_row_a_sentence_and_a_token(minilm: MiniLmEmbedder) -> None:
    first, second = minilm.encode(TEXTS)
    assert [len(first.sentences) // STATE_DIMENSION, len(second.sentences) // STATE_DIMENSION] == [
        2,
        1,
    ]
    assert len(first.tokens) // 16 == minilm.count_tokens(TEXTS[:1])[0] - 2


@pytest.mark.parametrize(
    "text", ["", "\u200b", "a " * 2000, "word. " * 90, "一二三四五六七八九十" * 40]
)
def test_any_text_has_a_code(minilm: MiniLmEmbedder, text: str) -> None:
    (code,) = minilm.encode([text])
    assert code.fits()


def test_text_without_sentence_ends_is_taken_in_windows(minilm: MiniLmEmbedder) -> None:
    (code,) = minilm.encode(["wind " * 3 * WINDOW])
    assert len(code.sentences) // STATE_DIMENSION == 3


def test_a_question_tells_which_words_the_model_knows_whole(minilm: MiniLmEmbedder) -> None:
    common = minilm.encode_question(
        "Which percentage of the parliment is northwestern?"
    ).common_stems
    assert {"percentag", "northwestern"} <= common
    assert "parliment" not in common


def test_a_text_that_is_too_long_to_embed_is_refused(minilm: MiniLmEmbedder) -> None:
    with pytest.raises(PassageTooLong):
        minilm.embed_and_encode(["wind " * 400])


def test_the_passage_that_answers_is_nearer(minilm: MiniLmEmbedder) -> None:
    question = minilm.encode_question("How do walruses make sounds?")
    assert len(question.stems) == len(question.pieces) == len(question.directions)
    assert np.linalg.norm(question.directions, axis=1) == pytest.approx(1.0, abs=1e-5)
    words = QuestionWords({"walrus": 3.0, "make": 1.0, "sound": 2.0}, {})
    sentence, tokens = late_signals(question, words, list(minilm.encode(TEXTS)))
    assert sentence[0] > sentence[1]
    assert tokens[0] > tokens[1]
