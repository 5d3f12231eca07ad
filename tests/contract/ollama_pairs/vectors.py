"""Pairs about vectors."""

from __future__ import annotations

from tests.contract.ollama_pairs.pair import LLAMA_SERVER, TOO_LONG, Pair, Received, embed


def _vectors(got: Received) -> list[list[float]]:
    found = got.value["embeddings"]
    assert isinstance(found, list)
    return found


def _unit(row: list[float]) -> bool:
    return abs(sum(value * value for value in row) - 1) < 1e-2


VECTORS = [
    Pair(
        "two texts",
        "/api/embed",
        embed(["a river", "a sea"]),
        holds=lambda got: len(_vectors(got)) == 2 and all(map(_unit, _vectors(got))),
    ),
    Pair("one text", "/api/embed", embed("a river"), holds=lambda got: len(_vectors(got)) == 1),
    Pair("nothing", "/api/embed", embed(""), holds=lambda got: _vectors(got) == []),
    Pair("null", "/api/embed", embed(None), holds=lambda got: _vectors(got) == []),
    Pair("no input", "/api/embed", {"model": "{embed}"}, holds=lambda got: _vectors(got) == []),
    Pair("a number", "/api/embed", embed(7), 400, "invalid input type"),
    Pair(
        "sixteen dimensions",
        "/api/embed",
        embed("a river", dimensions=16),
        holds=lambda got: len(_vectors(got)[0]) == 16 and _unit(_vectors(got)[0]),
    ),
    Pair(
        "negative dimensions",
        "/api/embed",
        embed("a river", dimensions=-4),
        holds=lambda got: len(_vectors(got)[0]) > 16,
    ),
    Pair(
        "too long",
        "/api/embed",
        embed("river " * 5000, truncate=False, options={"num_ctx": 256}),
        400,
        TOO_LONG,
        kind=None,
    ),
    Pair(
        "cut",
        "/api/embed",
        embed("river " * 5000, options={"num_ctx": 256}),
        holds=lambda got: int(str(got.value["prompt_eval_count"])) <= 256,
    ),
    Pair(
        "alone",
        "/api/embeddings",
        {"model": "{embed}", "prompt": "a river"},
        holds=lambda got: "embedding" in got.value,
    ),
    Pair(
        "alone, nothing",
        "/api/embeddings",
        {"model": "{embed}", "prompt": ""},
        holds=lambda got: got.value["embedding"] == [],
    ),
    Pair(
        "a chat model",
        "/api/embed",
        embed("x", model="{chat}"),
        501,
        "This server does not support embeddings.*",
        kind=None,
        since=LLAMA_SERVER,
    ),
    Pair(
        "a chat model",
        "/api/embed",
        embed("x", model="{chat}"),
        holds=lambda got: len(_vectors(got)) == 1,
        until=LLAMA_SERVER,
    ),
]
