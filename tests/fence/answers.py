"""Three hundred answers over the sample documents, without a model and by the double.

Vectors are stored with them (`golden/vectors.npz`) and scores are left out, so that they are the
same on every machine. The double says what tests write down: its answers hold prompts, citations
and notices still, not quality.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.fakes.ollama_double import DoubleModel, OllamaDouble
from tests.fence.server import FenceServer, fence_server

MODEL = "fence:8b"
ABSENT = (
    "What is the boiling point of tungsten?",
    "Who won the chess olympiad of 2031?",
    "How many moons has the planet Kepler-186f?",
)
OTHERS = (
    "Thanks!",
    "What have we discussed?",
    "Compare coffee and tea.",
    "What is the score fusion paper about?",
    "Is the octopus a mollusc?",
    "Which documents speak of glass?",
)
MODES = ("compare", "methodology", "datasets", "reproduce", "summary")
STRATEGIES = ("hyde", "multi_query", "flare")


def questions() -> list[tuple[str, str]]:
    """Return the questions of the samples and some that they do not answer, with a library each."""
    lines = Path("data/sample_docs/questions.jsonl").read_text("utf-8").splitlines()
    asked = [json.loads(line) for line in lines]
    return [(one["question"], one["library"]) for one in asked] + [
        (question, "all") for question in (*ABSENT, *OTHERS)
    ]


def requests() -> Iterator[dict[str, object]]:
    """Yield the request of every answer; `model` says whether the double is asked."""
    asked = questions()
    for question, library in asked:
        yield {"question": question, "library": library}
        yield {"question": question, "library": library, "retrieve_only": True, "top_k": 3}
    for number, (question, library) in enumerate(asked):
        mode = MODES[number % len(MODES)]
        yield {"question": question, "library": library, "query_mode": mode}
    for number, (question, _) in enumerate(asked[::2]):
        yield {
            "question": question,
            "library": "all",
            "fusion": ("rrf", "dense", "lexical")[number % 3],
        }
    for number, (question, library) in enumerate(asked[::2]):
        yield {"question": question, "library": library, "model": MODEL}
        strategy = STRATEGIES[number % len(STRATEGIES)]
        body = {"question": question, "library": library, "model": MODEL}
        yield {**body, "retrieval_strategy": strategy}


def record(server: FenceServer, request: Mapping[str, object]) -> dict[str, object]:
    """Return what a person sees of an answer: no scores, no identifiers of the request."""
    reply = server.client.post("/api/v1/query", json={**request, "trace": "none"})
    body: dict[str, Any] = reply.json()
    if reply.status_code != 200:
        return {"request": request, "error": body["code"]}
    return {
        "request": request,
        "status": body["status"],
        "answer": body["answer"],
        "generator": body["generator"],
        "sources": [
            f"{source['n']} {source['title']} {source['start']}-{source['end']}"
            for source in body["sources"]
        ],
        "sentences": [
            f"{sentence['verdict']} "
            + " ".join(f"[{c['n']} {c['start']}-{c['end']}]" for c in sentence["citations"])
            for sentence in body["sentences"]
        ],
        "notices": [notice["code"] for notice in body["notices"]],
    }


def answers() -> list[dict[str, object]]:
    """Ask all requests of a server that has the samples, and return the records in order."""
    with (
        OllamaDouble([DoubleModel(MODEL, parameter_size="8.0B")]) as double,
        fence_server(
            ollama_base_url=double.url,
            embedding_provider="minilm",
            evidence="full",
            model_prompts="full",
            llm_model="absent:1b",
        ) as server,
    ):
        added = server.client.post("/api/v1/samples?wait=true")
        assert added.status_code < 300, added.text
        return [record(server, request) for request in requests()]
