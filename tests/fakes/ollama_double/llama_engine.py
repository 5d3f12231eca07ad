"""A GGUF file behind the double, read by llama.cpp in this process (needs llama-cpp-python)."""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

import llama_cpp
import numpy as np
from llama_cpp.llama_chat_format import Jinja2ChatFormatter

from tests.fakes.ollama_double.engine import Ask, Entry, Gone, Piece
from tests.fakes.ollama_double.models import DoubleModel

_STEP = 256
"""Prompt tokens that are read between two looks at the client."""
_CHATML = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>\n'"
    " }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
_FILE_TYPES = {
    0: "F32",
    1: "F16",
    2: "Q4_0",
    3: "Q4_1",
    7: "Q8_0",
    14: "Q4_K_S",
    15: "Q4_K_M",
    17: "Q5_K_M",
    18: "Q6_K",
}


class LlamaEngine:
    """One model; the double lets one request in at a time."""

    measured = True

    def __init__(self, path: Path, *, threads: int | None = None, load_s: float = 0.0) -> None:
        self.path, self._threads, self._load_s = path, threads, load_s
        self._llama: Any = None
        self._vectors: Any = None
        about = llama_cpp.Llama(str(path), vocab_only=True, verbose=False)
        meta = about.metadata
        self._template = Jinja2ChatFormatter(
            meta.get("tokenizer.chat_template") or _CHATML,
            eos_token=_special(about, "tokenizer.ggml.eos_token_id"),
            bos_token=_special(about, "tokenizer.ggml.bos_token_id"),
        )
        self._bos = meta.get("tokenizer.ggml.add_bos_token") == "true"
        self._family = meta["general.architecture"]
        self._meta = meta

    def model(self, name: str) -> DoubleModel:
        """What lists and details say of it."""
        meta, family = self._meta, self._family
        with self.path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        self._open(512)
        return DoubleModel(
            name,
            family,
            int(meta[f"{family}.context_length"]),
            parameter_size=_human(llama_cpp.llama_model_n_params(self._llama.model)),
            quantisation=_FILE_TYPES.get(int(meta.get("general.file_type", -1)), "unknown"),
            size=self.path.stat().st_size,
            weights=digest,
        )

    @property
    def dimension(self) -> int:
        return int(self._meta[f"{self._family}.embedding_length"])

    def load(self, window: int) -> None:
        if self._llama.n_ctx() != window:
            time.sleep(self._load_s)
            self._open(window)

    def _open(self, window: int) -> None:
        options = {"n_threads": self._threads, "n_threads_batch": self._threads, "verbose": False}
        self._llama = llama_cpp.Llama(str(self.path), n_ctx=window, **options)

    def count(self, ask: Ask) -> int:
        return len(self._tokens(ask))

    def read(self, ask: Ask, keep: int, gone: Gone) -> None:
        """Read all but the last token, beginning where the last prompt differs; `write` reads that one."""
        tokens = self._tokens(ask)[-keep:]
        llama = self._llama
        known = llama.input_ids[: llama.n_tokens].tolist()
        same = next(
            (at for at, (old, new) in enumerate(zip(known, tokens, strict=False)) if old != new),
            min(len(known), len(tokens)),
        )
        at = llama.n_tokens = min(same, len(tokens) - 1)
        while at < len(tokens) - 1:
            gone()
            llama.eval(tokens[at : min(at + _STEP, len(tokens) - 1)])
            at = llama.n_tokens
        gone()
        self._prompt = tokens

    def write(self, ask: Ask) -> Generator[Piece, None, str]:
        llama = self._llama
        llama.set_seed(int(ask.number("seed", -1)) & 0xFFFFFFFF)
        said = llama.generate(
            self._prompt,
            top_k=int(ask.number("top_k", 40)),
            top_p=ask.number("top_p", 0.9),
            min_p=ask.number("min_p", 0.0),
            temp=ask.number("temperature", 0.8),
            repeat_penalty=ask.number("repeat_penalty", 1.0),
            grammar=_grammar(ask.format),
        )
        vocabulary = llama_cpp.llama_model_get_vocab(llama.model)
        spelled, entries = b"", list[Entry]()
        for token in said:
            if llama_cpp.llama_vocab_is_eog(vocabulary, token):
                break
            raw = llama.detokenize([token], special=False)
            entries.append(self._entry(token, raw, ask.top))
            spelled += raw
            try:
                text = spelled.decode()
            except UnicodeDecodeError:
                continue  # a character over several tokens goes out when it is whole
            yield Piece(text, tuple(entries))
            spelled, entries = b"", []
            if llama.n_tokens >= llama.n_ctx() - 1:
                return "length"
        return "stop"

    def vectors(
        self, texts: Sequence[str], limit: int, truncate: bool
    ) -> tuple[list[list[float]], list[int]] | None:
        if self._vectors is None:
            self._vectors = llama_cpp.Llama(
                str(self.path),
                n_ctx=2048,
                n_batch=2048,
                n_ubatch=2048,
                embedding=True,
                pooling_type=llama_cpp.LLAMA_POOLING_TYPE_MEAN,
                n_threads=self._threads,
                n_threads_batch=self._threads,
                verbose=False,
            )
        tokens = [self._vectors.tokenize(text.encode(), add_bos=self._bos) for text in texts]
        limit = min(limit, 2046)
        if not truncate and any(len(row) > limit for row in tokens):
            return None
        cut = [
            text
            if len(row) <= limit
            else self._vectors.detokenize(row[:limit]).decode("utf-8", "ignore")
            for text, row in zip(texts, tokens, strict=True)
        ]
        rows = [np.asarray(self._vectors.embed(text)) for text in cut]
        return [(row / np.linalg.norm(row)).tolist() for row in rows], [
            min(len(row), limit) for row in tokens
        ]

    def _tokens(self, ask: Ask) -> list[int]:
        if ask.raw is not None:
            prompt = ask.raw
        else:
            # an answer that is begun is continued
            begun = ask.messages[-1]["content"] if ask.messages[-1]["role"] == "assistant" else ""
            turns = ask.messages[:-1] if begun else ask.messages
            prompt = self._template(messages=[dict(turn) for turn in turns]).prompt + begun
        tokens: list[int] = self._llama.tokenize(prompt.encode(), add_bos=self._bos, special=True)
        return tokens

    def _entry(self, token: int, raw: bytes, top: int) -> Entry:
        logits = np.ctypeslib.as_array(
            llama_cpp.llama_get_logits_ith(self._llama.ctx, -1), shape=(self._llama.n_vocab(),)
        )
        peak = float(logits.max())
        total = peak + math.log(float(np.exp(logits - peak).sum()))
        best: list[int] = np.argpartition(logits, -top)[-top:].tolist() if top else []
        ranked = sorted(best, key=lambda at: -float(logits[at]))
        others = tuple(
            (_spelled(self._llama.detokenize([at])), float(logits[at]) - total) for at in ranked
        )
        return Entry(_spelled(raw), float(logits[token]) - total, others)


def _spelled(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def _special(llama: Any, key: str) -> str:  # of a package without types
    identity = llama.metadata.get(key)
    return _spelled(llama.detokenize([int(identity)], special=True)) if identity is not None else ""


def _grammar(wanted: object) -> Any:  # of a package without types
    if wanted is None:
        return None
    if wanted == "json":
        return llama_cpp.LlamaGrammar.from_string(llama_cpp.llama_grammar.JSON_GBNF, verbose=False)
    return llama_cpp.LlamaGrammar.from_json_schema(json.dumps(wanted), verbose=False)


def _human(count: int) -> str:
    """A count as the server writes it: `494.03M`, `1.54B`."""
    for size, letter in ((1e9, "B"), (1e6, "M"), (1e3, "K")):
        if count >= size:
            return f"{count / size:.2f}".rstrip("0").rstrip(".") + letter
    return str(count)
