"""Late interaction by hand: sentences, tokens, weights, and passages without a code."""

from __future__ import annotations

import numpy as np
import pytest

from app.core.types import STATE_DIMENSION, TOKEN_BITS, PassageCode, QuestionCode
from app.retrieval.candidates import QuestionWords
from app.retrieval.reranking import late_signals, with_late

ALL, NONE = bytes([255] * (TOKEN_BITS // 8)), bytes(TOKEN_BITS // 8)


def _axis(place: int) -> list[int]:
    return [127 if at == place else 0 for at in range(STATE_DIMENSION)]


def _code(sentences: list[int], tokens: list[bytes]) -> PassageCode:
    rows = np.array([_axis(place) for place in sentences], dtype=np.int8)
    return PassageCode(rows.tobytes(), b"".join(tokens))


def _question(stems: tuple[str, ...]) -> QuestionCode:
    """The first token points along all axes, the second against them."""
    directions = np.array([[1.0], [-1.0]], dtype=np.float32)[: len(stems)] * np.full(
        TOKEN_BITS, TOKEN_BITS**-0.5, dtype=np.float32
    )
    vector = np.zeros(STATE_DIMENSION, dtype=np.float32)
    vector[0] = 1.0
    return QuestionCode(vector, directions, stems, (1,) * len(stems))


def test_signals_by_hand() -> None:
    words = QuestionWords({"wall": 3.0, "built": 1.0}, {})
    codes = [_code([1, 0], [ALL, NONE]), _code([1], [ALL]), None]
    sentence, tokens = late_signals(_question(("wall", "built")), words, codes)
    assert sentence.tolist()[:2] == pytest.approx([1.0, 0.0])
    assert tokens.tolist()[:2] == pytest.approx([1.0, 0.75 - 0.25])
    assert np.isnan(sentence[2])
    assert np.isnan(tokens[2])


def test_a_question_without_telling_words_weighs_all_alike() -> None:
    _, tokens = late_signals(_question(("what", "is")), QuestionWords({}, {}), [_code([0], [ALL])])
    assert tokens.tolist() == pytest.approx([0.0])


def test_nothing_is_known_without_codes() -> None:
    signals = late_signals(_question(("wall",)), QuestionWords({"wall": 1.0}, {}), [None, None])
    scores = np.array([0.5, 0.25])
    assert with_late(scores, signals, sentence_weight=0.4, token_weight=0.75).tolist() == [
        0.5,
        0.25,
    ]


def test_a_passage_without_a_code_counts_as_the_mean() -> None:
    signals = np.array([1.0, 0.0, np.nan]), np.array([0.5, 0.5, np.nan])
    found = with_late(np.zeros(3), signals, sentence_weight=0.4, token_weight=1.0)
    assert found.tolist() == pytest.approx([0.9, 0.5, 0.7])


def test_codes_must_have_whole_rows() -> None:
    assert _code([0], [ALL]).fits()
    assert not PassageCode(b"", ALL).fits()
    assert not PassageCode(bytes(STATE_DIMENSION - 1), ALL).fits()
    assert not PassageCode(bytes(STATE_DIMENSION), ALL[:-1]).fits()
    assert not PassageCode(bytes(STATE_DIMENSION * 33), ALL).fits()
