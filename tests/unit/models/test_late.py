"""Codes of the embedded model: the same vectors, whole rows, and a nearness that says what the model's own states say."""

from __future__ import annotations

import numpy as np
import pytest

from app.core.errors import PassageTooLong
from app.core.types import STATE_DIMENSION
from app.models.late import WINDOW, LateEncoder
from app.models.minilm import MiniLmEmbedder
from app.retrieval.reranking import late_signals
from app.retrieval.search import QuestionWords

TEXTS = ["Walruses whistle in the wind. They sleep on ice.", "Penguins parade past the pole."]


@pytest.fixture(scope="module")
def minilm() -> MiniLmEmbedder:
    return MiniLmEmbedder()


@pytest.fixture(scope="module")
def encoder(minilm: MiniLmEmbedder) -> LateEncoder:
    return minilm.late_encoder()


def test_vectors_are_those_of_the_embedder_bit_for_bit(
    minilm: MiniLmEmbedder, encoder: LateEncoder
) -> None:
    rows, codes = encoder.embed_and_encode(TEXTS)
    assert rows.tobytes() == minilm.embed_passages(TEXTS).tobytes()
    assert (
        encoder.encode_question(TEXTS[0]).vector.tobytes() == minilm.embed_query(TEXTS[0]).tobytes()
    )
    assert codes == encoder.encode(TEXTS)


def test_a_code_has_a_row_a_sentence_and_a_token(
    minilm: MiniLmEmbedder, encoder: LateEncoder
) -> None:
    first, second = encoder.encode(TEXTS)
    assert [len(first.sentences) // STATE_DIMENSION, len(second.sentences) // STATE_DIMENSION] == [
        2,
        1,
    ]
    assert len(first.tokens) // 16 == minilm.count_tokens(TEXTS[:1])[0] - 2


@pytest.mark.parametrize(
    "text", ["", "\u200b", "a " * 2000, "word. " * 90, "一二三四五六七八九十" * 40]
)
def test_any_text_has_a_code(encoder: LateEncoder, text: str) -> None:
    (code,) = encoder.encode([text])
    assert code.fits()


def test_text_without_sentence_ends_is_taken_in_windows(encoder: LateEncoder) -> None:
    (code,) = encoder.encode(["wind " * 3 * WINDOW])
    assert len(code.sentences) // STATE_DIMENSION == 3


def test_a_question_tells_which_words_the_model_knows_whole(encoder: LateEncoder) -> None:
    common = encoder.encode_question(
        "Which percentage of the parliment is northwestern?"
    ).common_stems
    assert {"percentag", "northwestern"} <= common
    assert "parliment" not in common


def test_a_text_that_is_too_long_to_embed_is_refused(encoder: LateEncoder) -> None:
    with pytest.raises(PassageTooLong):
        encoder.embed_and_encode(["wind " * 400])


def test_the_passage_that_answers_is_nearer(encoder: LateEncoder) -> None:
    question = encoder.encode_question("How do walruses make sounds?")
    assert len(question.stems) == len(question.pieces) == len(question.directions)
    assert np.linalg.norm(question.directions, axis=1) == pytest.approx(1.0, abs=1e-5)
    words = QuestionWords({"walrus": 3.0, "make": 1.0, "sound": 2.0}, {})
    sentence, tokens = late_signals(question, words, list(encoder.encode(TEXTS)))
    assert sentence[0] > sentence[1]
    assert tokens[0] > tokens[1]
