"""Make late-interaction codes of passages and questions with the embedded model.

References:
    Khattab, Zaharia: ColBERT, SIGIR 2020 (token states compared one by one); Jegou et al.: Hamming
        embedding, ECCV 2008 (signs of
    projections). The axes are principal ones of the states of this repository's sample documents
    (`scripts.make_token_axes`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from app.core.errors import Unreadable
from app.core.sentences import sentence_spans
from app.core.text import tokenise
from app.core.types import (
    MAX_SENTENCES,
    STATE_DIMENSION,
    TOKEN_BITS,
    EmbedderIdentity,
    FloatArray,
    PassageCode,
    QuestionCode,
)
from app.core.vectors import l2_normalise
from app.models.bert import BertSession, BertTokenizer, TokenSpans, cut, feed
from app.models.embedding import refuse_long

AXES_FILE = Path(__file__).with_name("token_axes.npy")
WINDOW = 40
"""Tokens of a window where a text has no sentence ends."""
_UNENDED = 2 * WINDOW
"""A sentence of more tokens is taken in windows."""


class LateEncoder:
    """The PassageEncoder port on an open MiniLM; thread-safe."""

    def __init__(
        self, tokenizer: BertTokenizer, session: BertSession, identity: EmbedderIdentity
    ) -> None:
        """Read the axes.

        Raises:
            Unreadable: The packaged axes are missing or of another shape.
        """
        self._tokenizer, self._session, self.identity = tokenizer, session, identity
        self._mean, self._axes = _read_axes(AXES_FILE)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(one.ids) for one in self._tokenizer.encode_spans(texts)]

    def embed_and_encode(self, texts: Sequence[str]) -> tuple[FloatArray, list[PassageCode]]:
        """Return float32 `[n, 384]`, bit for bit the embedder's, and codes, from one run each.

        Raises:
            PassageTooLong: A text has more tokens than the model reads.
        """
        spans = self._tokenizer.encode_spans(texts)
        refuse_long(
            texts, [len(one.ids) for one in spans], self.identity.model, self.identity.max_tokens
        )
        runs = self._session.with_states([feed(one.ids) for one in spans])
        rows = (
            np.stack([row for row, _ in runs])
            if runs
            else np.empty((0, STATE_DIMENSION), dtype=np.float32)
        )
        return rows, [
            self._code(text, one, states[1:-1])
            for text, one, (_, states) in zip(texts, spans, runs, strict=True)
        ]

    def encode(self, texts: Sequence[str]) -> list[PassageCode]:
        """Return codes of texts of any length; long ones are encoded in parts."""
        return [
            self._code(text, one, self._states(one))
            for text, one in zip(texts, self._tokenizer.encode_spans(texts), strict=True)
        ]

    def _states(self, spans: TokenSpans) -> FloatArray:
        """Return the states of a text's own tokens, `[t, 384]`."""
        first, *own, last = spans.ids
        size = self.identity.max_tokens - 2
        parts = [own[at : at + size] for at in range(0, len(own), size)] or [[]]
        runs = self._session.with_states([feed([first, *part, last]) for part in parts])
        return np.concatenate([states[1:-1] for _, states in runs])

    def encode_question(self, text: str) -> QuestionCode:
        """Return vector, directions and words of a question; over 256 tokens it is cut."""
        (spans,) = self._tokenizer.encode_spans([text])
        ids = cut(spans.ids, self.identity.max_tokens)
        ((row, states),) = self._session.with_states([feed(ids)])
        n = len(ids) - 2
        words, offsets = spans.words[1 : n + 1], spans.offsets[1 : n + 1]
        stems, pieces = [""] * n, [1] * n
        for word in dict.fromkeys(words):
            places = [place for place, of in enumerate(words) if of == word]
            found = tokenise(text[offsets[places[0]][0] : offsets[places[-1]][1]])
            for place in places:
                stems[place], pieces[place] = (found[0] if found else ""), len(places)
        directions = l2_normalise((states[1:-1] - self._mean) @ self._axes)
        return QuestionCode(row, directions.astype(np.float32), tuple(stems), tuple(pieces))

    def _code(self, text: str, spans: TokenSpans, states: FloatArray) -> PassageCode:
        if not len(states):  # a text of signs that the model drops
            return PassageCode(bytes(STATE_DIMENSION), bytes(TOKEN_BITS // 8))
        means = np.stack(
            [states[start:end].mean(axis=0) for start, end in _sentences(text, spans.offsets[1:-1])]
        )
        rounded = np.rint(l2_normalise(means) * 127).astype(np.int8)
        return PassageCode(
            rounded.tobytes(),
            np.packbits((states - self._mean) @ self._axes >= 0, axis=1).tobytes(),
        )


def _sentences(text: str, offsets: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return half-open token spans, 1 to 32: sentences, or windows of a text without ends."""
    found = list(_by_sentence(text, offsets))
    if len(found) <= MAX_SENTENCES:
        return found
    size = max(WINDOW, -(-len(offsets) // MAX_SENTENCES))
    return [(at, min(at + size, len(offsets))) for at in range(0, len(offsets), size)]


def _by_sentence(text: str, offsets: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    begin = 0
    for _, end in sentence_spans(text) or [(0, len(text))]:
        stop = begin
        while stop < len(offsets) and offsets[stop][0] < end:
            stop += 1
        size = WINDOW if stop - begin > _UNENDED else max(1, stop - begin)
        yield from ((at, min(at + size, stop)) for at in range(begin, stop, size))
        begin = stop


def _read_axes(path: Path) -> tuple[FloatArray, FloatArray]:
    """Return the mean `[384]` and the axes `[384, 128]`."""
    try:
        held = np.load(path, allow_pickle=False).astype(np.float32)
    except (OSError, ValueError) as exc:
        raise Unreadable(
            f"the axes {path.name!r} cannot be read ({exc}); install the package again"
        ) from exc
    if held.shape != (1 + TOKEN_BITS, STATE_DIMENSION):
        raise Unreadable(
            f"the axes {path.name!r} have shape {held.shape}; install the package again"
        )
    return held[0], held[1:].T
