"""Pairs about answers."""

from __future__ import annotations

import json

from tests.contract.ollama_pairs.pair import LLAMA_SERVER, TOO_LONG, Json, Pair, Received, turn


def _stream_holds(got: Received) -> bool:
    *parts, last = got.lines
    whole = all(part["done"] is False and "message" in part for part in parts)
    return (
        bool(parts)
        and whole
        and last["done"] is True
        and last["done_reason"] in {"stop", "length"}
        and _metrics(last)
    )


def _metrics(last: Json) -> bool:
    names = (
        "total_duration",
        "prompt_eval_count",
        "prompt_eval_duration",
        "eval_count",
        "eval_duration",
    )
    return all(isinstance(last.get(name), int) for name in names)


def _entries(got: Received) -> list[Json]:
    found = got.value.get("logprobs")
    return found if isinstance(found, list) else []


def _likeliest(got: Received) -> int:
    rows = _entries(got)[0]["top_logprobs"]
    return len(rows) if isinstance(rows, list) else 0


def _content(got: Received) -> str:
    message = got.value["message"]
    assert isinstance(message, dict)
    return str(message["content"])


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


SCHEMA = {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}
CHAT = [
    Pair(
        "stream", "/api/chat", turn(stream=True), kind="application/x-ndjson", holds=_stream_holds
    ),
    Pair(
        "whole",
        "/api/chat",
        turn(),
        holds=lambda got: got.value["done"] is True and _metrics(got.value) and bool(_content(got)),
    ),
    Pair(
        "load", "/api/chat", turn(messages=[]), holds=lambda got: got.value["done_reason"] == "load"
    ),
    Pair(
        "load by generate",
        "/api/generate",
        {"model": "{chat}", "options": {"num_ctx": 2048}},
        holds=lambda got: got.value["done_reason"] == "load",
    ),
    Pair(
        "logprobs",
        "/api/chat",
        turn(logprobs=True),
        holds=lambda got: "top_logprobs" not in _entries(got)[0],
        since=(0, 12, 11),
    ),
    Pair(
        "top logprobs",
        "/api/chat",
        turn(logprobs=True, top_logprobs=3),
        holds=lambda got: _likeliest(got) == 3,
        since=(0, 12, 11),
    ),
    Pair(
        "top logprobs: too many",
        "/api/chat",
        turn(logprobs=True, top_logprobs=21),
        400,
        "top_logprobs must be between 0 and 20",
        since=(0, 12, 11),
    ),
    Pair(
        "limit",
        "/api/chat",
        turn("Count to twenty.", options={"num_predict": 2}),
        holds=lambda got: got.value["done_reason"] == "length" and got.value["eval_count"] == 2,
    ),
    Pair(
        "schema",
        "/api/chat",
        turn("Reply in JSON.", format=SCHEMA, options={"num_predict": 60}),
        holds=lambda got: got.value["done_reason"] == "length" or _is_object(_content(got)),
    ),
    Pair(
        "bad schema",
        "/api/chat",
        turn(format={"type": "nonsense"}),
        500,
        "invalid JSON schema in format",
        kind=None,
        until=LLAMA_SERVER,
    ),
    Pair(
        "bad schema",
        "/api/chat",
        turn(format={"type": "nonsense"}),
        400,
        ".*(?:schema|grammar).*",
        kind=None,
        since=LLAMA_SERVER,
    ),
    Pair(
        "bad format",
        "/api/chat",
        turn(format="xml"),
        500,
        r'invalid format: "\\"xml\\""; expected "json" or a valid JSON Schema object',
        kind=None,
    ),
    Pair("bad think", "/api/chat", turn(think="lots"), 400, 'invalid think value: "lots" .*'),
    Pair("think off", "/api/chat", turn(think=False)),
    Pair(
        "stop as text",
        "/api/chat",
        turn(options={"stop": "x"}),
        500,
        'option "stop" must be of type array',
    ),
    Pair(
        "num_ctx as text",
        "/api/chat",
        turn(options={"num_ctx": "many"}),
        500,
        'option "num_ctx" must be of type integer',
    ),
    Pair("unknown option", "/api/chat", turn(options={"nonsense": 1})),
    Pair(
        "messages as text",
        "/api/chat",
        turn(messages="hello"),
        400,
        "json: cannot unmarshal string into Go struct field .*messages of type .*",
    ),
    Pair(
        "keep_alive without unit",
        "/api/chat",
        turn(keep_alive="300"),
        400,
        "time: missing unit in duration.*",
    ),
    Pair(
        "an embedding model",
        "/api/chat",
        turn(model="{embed}"),
        400,
        '"{embed}" does not support chat',
    ),
    Pair(
        "an embedding model, generate",
        "/api/generate",
        {"model": "{embed}", "prompt": "x"},
        400,
        '"{embed}" does not support generate',
    ),
    Pair(
        "too long",
        "/api/chat",
        turn("river " * 5000, truncate=False, shift=False),
        400,
        TOO_LONG,
        kind=None,
        until=LLAMA_SERVER,
    ),
    Pair(
        "too long, llama-server",
        "/api/chat",
        turn("river " * 5000, truncate=False, shift=False),
        400,
        ".*exceed_context_size_error.*",
        kind=None,
        since=LLAMA_SERVER,
    ),
    Pair(
        "cut",
        "/api/chat",
        turn("river " * 5000, options={"num_ctx": 512}),
        holds=lambda got: 0 < int(str(got.value["prompt_eval_count"])) <= 512,
    ),
    Pair(
        "generate",
        "/api/generate",
        {**turn(), "prompt": "Say: river"},
        holds=lambda got: bool(got.text("response")) and "context" in got.value,
    ),
    Pair(
        "generate raw",
        "/api/generate",
        {**turn(), "prompt": "One, two,", "raw": True},
        holds=lambda got: "context" not in got.value,
    ),
    Pair(
        "raw with a system text",
        "/api/generate",
        {"model": "{chat}", "prompt": "x", "system": "y", "raw": True},
        400,
        "raw mode does not support.*",
    ),
]
