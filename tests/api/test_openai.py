"""The OpenAI door, with OpenAI's own client against a real socket."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest
from openai import OpenAI
from openai.types.chat import ChatCompletionChunk

from app.api.openai import Completion, task_of
from app.api.openai_responses import Responder
from app.core.errors import ProviderTimeout
from app.core.types import Token
from tests.api.conftest import LIBRARY, Site, listening, site
from tests.api.test_streaming import SlowModel
from tests.fakes.generators import FixedModels, ScriptedGenerator, tokens_of

WAIT_S = 10.0
KEY = "k3y"
ASKED = "What is the melting point of copper?"
UNSAID = "What do lions eat for breakfast?"


class Door:
    """A server with papers behind a socket, and who answers there."""

    def __init__(self, opened: Site, url: str, models: FixedModels) -> None:
        self.site, self.url, self.models = opened, url, models

    def client(self, key: str = KEY) -> OpenAI:
        return OpenAI(base_url=f"{self.url}/v1", api_key=key, max_retries=0, timeout=WAIT_S)

    def says(self, *script: str | Exception | list[Token | Exception]) -> ScriptedGenerator:
        generator = ScriptedGenerator(*script)
        self.models.model = generator
        return generator


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    models = FixedModels()
    with site(tmp_path_factory.mktemp("openai"), models, api_key=KEY) as opened:
        opened.client.headers["X-API-Key"] = KEY
        status, _ = opened.upload(*((name, text.encode()) for name, text in LIBRARY.items()))
        assert status == 201
        with listening(opened.app, lifespan="off") as url:
            yield Door(opened, url, models)


@pytest.fixture(autouse=True)
def nobody_answers(door: Door) -> None:
    door.models.model = door.models.helper = None


def content(chunks: list[ChatCompletionChunk]) -> str:
    return "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)


def test_the_libraries_are_the_models(door: Door) -> None:
    with door.client() as client:
        listed = client.models.list().data
        assert [model.id for model in listed] == [
            "documind",
            "documind-public",
            "documind-papers",
            "documind-all",
        ]
        assert all(abs(model.created - time.time()) < 600 for model in listed)
        assert client.models.retrieve("documind-papers").owned_by == "documind"


def test_an_answer_with_citations_as_annotations(door: Door) -> None:
    door.says("Copper melts at 1085 degrees Celsius [1]. It is very expensive [1].")
    with door.client() as client:
        reply = client.chat.completions.create(
            model="documind-papers",
            messages=[{"role": "user", "content": ASKED}],
            temperature=0.7,
            seed=3,
            user="somebody",
        )
    message = reply.choices[0].message
    assert message.content == "Copper melts at 1085 degrees Celsius [1]. It is very expensive."
    assert message.annotations is not None
    (annotation,) = message.annotations
    cited = annotation.url_citation
    assert message.content[cited.start_index : cited.end_index] == "[1]"
    assert cited.title == "Copper"
    assert cited.url.startswith(f"{door.url}/?library=papers&doc=")
    ours = cited.model_dump()
    whole = f"/api/v1/documents/{ours['doc_id']}/text?library=papers&start={ours['start']}&end={ours['end']}"
    assert door.site.client.get(whole).json()["text"] == ours["quote"]
    assert "1085" in ours["quote"]
    assert reply.usage is not None
    assert reply.usage.total_tokens == reply.usage.prompt_tokens + reply.usage.completion_tokens > 0
    assert reply.choices[0].finish_reason == "stop"
    stored = door.site.client.get(f"/api/v1/answers/{reply.id.removeprefix('chatcmpl-')}").json()
    assert stored["answer"] == message.content


def test_a_stream_shows_words_as_they_come_and_ends_with_what_was_verified(door: Door) -> None:
    door.says("Copper melts at 1085 degrees Celsius [1]. It is very expensive [1].")
    with door.client() as client:
        chunks = list(
            client.chat.completions.create(
                model="documind-papers",
                messages=[{"role": "user", "content": ASKED}],
                stream=True,
                stream_options={"include_usage": True},
            )
        )
    shown = content(chunks)
    assert shown == "Copper melts at 1085 degrees Celsius [1]. It is very expensive [1]."
    assert len(chunks) > 8
    assert len({chunk.id for chunk in chunks}) == 1
    assert chunks[0].choices[0].delta.role == "assistant"
    closing, counts = chunks[-2], chunks[-1]
    assert closing.choices[0].finish_reason == "stop"
    (annotation,) = closing.choices[0].delta.model_dump()["annotations"]
    cited = annotation["url_citation"]
    assert (cited["start_index"], cited["end_index"]) == (
        shown.index("[1]"),
        shown.index("[1]") + 3,
    )
    assert (
        closing.model_dump()["documind"]["answer"]
        == "Copper melts at 1085 degrees Celsius [1]. It is very expensive."
    )
    assert counts.choices == []
    assert counts.usage is not None
    assert counts.usage.prompt_tokens > 0


def test_without_a_model_it_quotes_and_counts_nothing(door: Door) -> None:
    with door.client() as client:
        reply = client.chat.completions.create(
            model="documind-all", messages=[{"role": "user", "content": ASKED}]
        )
        chunks = list(
            client.chat.completions.create(
                model="documind-all", messages=[{"role": "user", "content": ASKED}], stream=True
            )
        )
    assert "1085" in (reply.choices[0].message.content or "")
    assert reply.usage is not None
    assert reply.usage.total_tokens == 0
    assert content(chunks) == reply.choices[0].message.content


def test_a_refusal_has_no_citations_and_names_the_nearest_places_in_its_record(door: Door) -> None:
    with door.client() as client:
        reply = client.chat.completions.create(
            model="documind-papers", messages=[{"role": "user", "content": UNSAID}]
        )
        response = client.responses.create(model="documind-papers", input=UNSAID)
    assert reply.choices[0].message.annotations == []
    for record in (reply.model_dump()["documind"], response.model_dump()["documind"]):
        assert record["status"] == "abstained"
        assert "Lions" in {near["title"] for near in record["nearest"]}


def test_earlier_turns_are_history_and_the_system_message_reaches_the_model(door: Door) -> None:
    generator = door.says("It melts at 1085 degrees Celsius [1].")
    door.models.helper = ScriptedGenerator("At what temperature does copper melt?")
    with door.client() as client:
        reply = client.chat.completions.create(
            model="documind-papers",
            messages=[
                {"role": "system", "content": "You are a pirate."},
                {"role": "user", "content": "Tell me about copper."},
                {"role": "assistant", "content": "Copper is a soft red metal [1]."},
                {
                    "role": "user",
                    "content": [{"type": "text", "text": "At what temperature does it melt?"}],
                },
            ],
        )
    assert reply.choices[0].message.content == "It melts at 1085 degrees Celsius [1]."
    sent = [message.content for prompt in generator.prompts for message in prompt.messages]
    assert any("Tell me about copper." in text for text in sent)
    assert any("You are a pirate." in text for text in sent)
    assert (
        reply.model_dump()["documind"]["rewritten_query"] == "At what temperature does copper melt?"
    )


def test_without_a_model_a_system_message_is_not_refused_but_said_to_be_unused(door: Door) -> None:
    messages = [
        {"role": "system", "content": "Answer in French."},
        {"role": "user", "content": ASKED},
    ]
    reply = door.site.client.post(
        "/v1/chat/completions", json={"model": "documind-papers", "messages": messages}
    )
    assert reply.status_code == 200
    assert "1085" in reply.json()["choices"][0]["message"]["content"]
    assert [notice["code"] for notice in reply.json()["documind"]["notices"]] == [
        "instructions_unused"
    ]


SCHEMA = {"type": "object", "properties": {"degrees": {"type": "integer"}}, "required": ["degrees"]}


@pytest.mark.parametrize("stream", [False, True])
def test_json_is_made_of_the_checked_answer_by_the_schema(door: Door, stream: bool) -> None:
    generator = door.says("Copper melts at 1085 degrees Celsius [1].", '{"degrees": 1085}')
    body = {
        "model": "documind-papers",
        "messages": [
            {"role": "system", "content": "Reply with JSON."},
            {"role": "user", "content": ASKED},
        ],
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "melting", "schema": SCHEMA},
        },
        "stream": stream,
    }
    reply = door.site.client.post("/v1/chat/completions", json=body)
    assert reply.status_code == 200, reply.text
    if stream:
        events = [
            json.loads(line[6:]) for line in reply.text.splitlines() if line.startswith("data: {")
        ]
        content, ours = events[0]["choices"][0]["delta"]["content"], events[1]["documind"]
        assert reply.text.endswith("data: [DONE]\n\n")
    else:
        content, ours = reply.json()["choices"][0]["message"]["content"], reply.json()["documind"]
    assert json.loads(content) == {"degrees": 1085}
    assert ours["sentences"][0]["citations"]
    asked = generator.prompts[-1]
    assert asked.json_schema == SCHEMA
    assert "Copper melts at 1085 degrees Celsius" in asked.messages[-1].content
    assert "Reply with JSON." in "".join(message.content for message in asked.messages)


def test_json_without_a_model_or_of_an_unknown_kind_is_refused_in_openais_shape(door: Door) -> None:
    with door.client() as client:
        for wanted in ({"type": "json_object"}, {"type": "xml"}):
            with pytest.raises(openai.BadRequestError, match="response_format") as refused:
                client.chat.completions.create(
                    model="documind-papers",
                    messages=[{"role": "user", "content": ASKED}],
                    response_format=wanted,  # type: ignore[call-overload]  # one of them is none of OpenAI's
                )
            assert refused.value.code == "invalid_input"
        text = client.chat.completions.create(
            model="documind-papers",
            messages=[{"role": "user", "content": ASKED}],
            response_format={"type": "text"},
        )
    assert "1085" in (text.choices[0].message.content or "")


def test_a_model_that_writes_no_json_is_an_error_of_the_provider(door: Door) -> None:
    door.says("Copper melts at 1085 degrees Celsius [1].", "about 1085")
    body = {
        "model": "documind-papers",
        "messages": [{"role": "user", "content": ASKED}],
        "response_format": {"type": "json_object"},
    }
    reply = door.site.client.post("/v1/chat/completions", json=body)
    assert reply.status_code == 502
    assert "no JSON" in reply.json()["error"]["message"]


TITLE = """### Task:
Generate a concise, 3-5 word title with an emoji summarizing the chat history.
### Output:
JSON format: { "title": "your concise title here" }
### Chat History:
<chat_history>
USER: At which temperature does copper melt when it is heated slowly in a furnace?
ASSISTANT: "tags": at 1085 degrees.
</chat_history>"""
TAGS = TITLE.replace('{ "title": "your concise title here" }', '{ "tags": ["tag1", "tag2"] }')


def test_titles_and_tags_are_no_questions_to_the_library(door: Door) -> None:
    def said(content: str) -> dict[str, object]:
        body = {"model": "documind-papers", "messages": [{"role": "user", "content": content}]}
        reply = door.site.client.post("/v1/chat/completions", json=body).json()
        assert reply["documind"] is None
        found: dict[str, object] = json.loads(reply["choices"][0]["message"]["content"])
        return found

    title = str(said(TITLE)["title"])
    assert title == "At which temperature does copper melt when it is heated slo…"
    assert len(title) == 60
    assert said(TAGS) == {"tags": ["Papers"]}
    assert said(TAGS.replace('"tags":', '"follow_ups":', 1)) == {"follow_ups": []}
    generator = door.says('{"title": "Copper melts"}')
    assert said(TITLE) == {"title": "Copper melts"}
    assert [message.content for message in generator.prompts[0].messages] == [TITLE]
    assert not generator.prompts[0].evidence


def test_a_question_about_a_task_is_still_a_question() -> None:
    assert task_of(TITLE) == "title"
    assert task_of('What does "title": mean in <chat_history>?') is None
    assert task_of('### Task: explain "title": to me') is None


def test_errors_have_openais_shape(door: Door) -> None:
    with door.client() as client:
        with pytest.raises(
            openai.NotFoundError, match="documind-public, documind-papers"
        ) as unknown:
            client.chat.completions.create(
                model="gpt-4", messages=[{"role": "user", "content": "x"}]
            )
        with pytest.raises(openai.BadRequestError, match="role 'user'") as nobody:
            client.chat.completions.create(
                model="documind-all", messages=[{"role": "system", "content": "x"}]
            )
        with pytest.raises(openai.BadRequestError, match="messages") as empty:
            client.chat.completions.create(model="documind-all", messages=[])
        with pytest.raises(openai.BadRequestError, match="at most 4,000"):
            client.chat.completions.create(
                model="documind-all", messages=[{"role": "user", "content": "x " * 2001}]
            )
    assert (unknown.value.code, unknown.value.type) == ("not_found", "invalid_request_error")
    assert (nobody.value.code, empty.value.code) == ("invalid_input", "invalid_input")
    with door.client("wrong") as stranger, pytest.raises(openai.AuthenticationError) as refused:
        stranger.models.list()
    assert refused.value.code == "invalid_api_key"
    with door.client() as client, pytest.raises(openai.PermissionDeniedError) as foreign:
        client.with_options(default_headers={"Host": "evil.example"}).models.list()
    assert foreign.value.code == "host_refused"


def test_a_long_list_of_findings_is_translated_though_it_was_compressed(door: Door) -> None:
    body = {"model": "documind-all", "messages": [{"role": 1, "content": 2}] * 30}
    reply = door.site.client.post(
        "/v1/chat/completions", json=body, headers={"Accept-Encoding": "gzip"}
    )
    assert reply.status_code == 400
    assert len(reply.content) > 1024
    assert reply.json()["error"]["code"] == "invalid_input"


def test_a_host_that_fails_midway_leaves_the_quote(door: Door) -> None:
    door.says([*tokens_of("Copper melts at")[:-1], ProviderTimeout("the model went silent")])
    seen: list[ChatCompletionChunk] = []
    with door.client() as client:
        seen.extend(
            client.chat.completions.create(
                model="documind-papers", messages=[{"role": "user", "content": ASKED}], stream=True
            )
        )
    text = "".join(chunk.choices[0].delta.content or "" for chunk in seen if chunk.choices)
    answer = seen[-1].model_dump()["documind"]
    assert text.startswith("Copper melts")
    assert text.endswith(f"\n\n{answer['answer']}")
    assert [notice["code"] for notice in answer["notices"]] == ["quoted_instead"]
    (citation, *_) = seen[-1].choices[0].delta.model_dump()["annotations"]
    place = citation["url_citation"]
    assert text[place["start_index"] : place["end_index"]] == "[1]"
    door.says([*tokens_of("Copper melts at")[:-1], ProviderTimeout("the model went silent")])
    with door.client() as client:
        whole = client.chat.completions.create(
            model="documind-papers", messages=[{"role": "user", "content": ASKED}]
        )
    assert whole.choices[0].message.content == answer["answer"]


def test_leaving_a_stream_stops_the_model(tmp_path: Path) -> None:
    model = SlowModel()
    with site(tmp_path, FixedModels(model=model)) as opened:
        status, _ = opened.upload(*((name, text.encode()) for name, text in LIBRARY.items()))
        assert status == 201
        with (
            listening(opened.app, lifespan="off") as url,
            OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0, timeout=WAIT_S) as client,
        ):
            for round_ in range(1, 6):
                stream = client.chat.completions.create(
                    model="documind-papers",
                    messages=[{"role": "user", "content": ASKED}],
                    stream=True,
                )
                words = ""
                while "Copper" not in words:
                    words += next(stream).choices[0].delta.content or ""
                assert model.started.acquire(timeout=WAIT_S)
                left = time.monotonic()
                stream.close()
                while model.active or opened.app.state.edge.streams.taken:
                    assert time.monotonic() - left < WAIT_S
                    threading.Event().wait(0.002)
                assert model.stopped == round_


SAID = "Copper melts at 1085 degrees Celsius [1]. It is very expensive [1]."


def test_embeddings_are_the_passages_vectors_as_numbers_and_as_bytes(door: Door) -> None:
    embedder = door.site.services.embedder
    texts = ["Copper melts.", "Tides rise."]
    with door.client() as client:
        reply = client.embeddings.create(model="documind", input=texts)  # the client asks base64
        numbers = client.embeddings.create(
            model=embedder.identity.model,
            input=texts[0],
            encoding_format="float",
            dimensions=embedder.identity.dimension,
        )
        wrong: list[dict[str, Any]] = [{"dimensions": 7}, {"input": [""]}, {"input": [[1, 2]]}]
        for more in wrong:
            with pytest.raises(openai.BadRequestError):
                client.embeddings.create(**{"model": "documind", "input": "x", **more})
        with pytest.raises(openai.NotFoundError, match=embedder.identity.model):
            client.embeddings.create(model="text-embedding-3-small", input="x")
    expected = embedder.embed_passages(texts)
    assert [row.index for row in reply.data] == [0, 1]
    assert [row.embedding for row in reply.data] == [row.tolist() for row in expected]
    assert numbers.data[0].embedding == pytest.approx(expected[0].tolist())
    assert reply.model == embedder.identity.model
    assert reply.usage.total_tokens == sum(embedder.count_tokens(texts))


def test_a_library_is_searched_as_a_vector_store(door: Door) -> None:
    with door.client() as client:
        found = client.vector_stores.search("papers", query="copper melting", max_num_results=2)
        assert found.object == "vector_store.search_results.page"
        first = found.data[0]
        assert (first.filename, first.content[0].type) == ("copper.txt", "text")
        assert 0 < first.score <= 1
        assert [hit.score for hit in found.data] == sorted(
            (hit.score for hit in found.data), reverse=True
        )
        where = dict(first.attributes or {})
        span = f"start={where['start']:.0f}&end={where['end']:.0f}&library={where['library']}"
        text = door.site.client.get(f"/api/v1/documents/{first.file_id}/text?{span}").json()["text"]
        assert text == first.content[0].text
        strict = client.vector_stores.search(
            "all", query="copper melting", ranking_options={"score_threshold": 1.1}
        )
        assert strict.data == []
        with pytest.raises(openai.BadRequestError):
            client.vector_stores.search(
                "papers", query="x", filters={"type": "eq", "key": "a", "value": "b"}
            )
        with pytest.raises(openai.BadRequestError):
            client.vector_stores.search("elsewhere", query="x")


def test_a_response_cites_files(door: Door) -> None:
    generator = door.says(SAID)
    with door.client() as client:
        reply = client.responses.create(
            model="documind-papers",
            input=[
                {"role": "user", "content": "Tell me of copper."},
                {"role": "assistant", "content": "It is a metal."},
                {"role": "user", "content": [{"type": "input_text", "text": ASKED}]},
            ],
            instructions="Be brief.",
            temperature=0.1,
        )
    assert reply.status == "completed"
    assert reply.output_text == "Copper melts at 1085 degrees Celsius [1]. It is very expensive."
    ((ours,),) = [part["annotations"] for part in reply.model_dump()["output"][0]["content"]]
    assert (ours["type"], ours["filename"]) == ("file_citation", "copper.txt")
    assert reply.output_text[ours["index"] :].startswith("[1]")
    whole = f"/api/v1/documents/{ours['file_id']}/text?library=papers&start={ours['start']}&end={ours['end']}"
    assert door.site.client.get(whole).json()["text"] == ours["quote"]
    assert reply.usage is not None
    assert reply.usage.total_tokens > 0
    assert "Be brief." in str(generator.prompts)
    stored = door.site.client.get(f"/api/v1/answers/{reply.id.removeprefix('resp_')}").json()
    assert stored["answer"] == reply.output_text


def test_a_response_streams_its_events(door: Door) -> None:
    door.says(SAID)
    with (
        door.client() as client,
        client.responses.stream(model="documind-papers", input=ASKED) as stream,
    ):
        sent = list(stream)
        final = stream.get_final_response()
    kinds = [one.type for one in sent if one.type != "response.output_text.delta"]
    assert kinds == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.annotation.added",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]
    assert [one.sequence_number for one in sent] == list(range(len(sent)))
    assert len(sent) > len(kinds) + 8
    said = "".join(one.delta for one in sent if one.type == "response.output_text.delta")
    assert said == final.output_text == SAID


def test_a_response_without_a_model_is_a_quote_also_in_a_stream(door: Door) -> None:
    with door.client() as client:
        reply = client.responses.create(model="documind-papers", input=ASKED)
        events = list(client.responses.create(model="documind-papers", input=ASKED, stream=True))
    assert "1085" in reply.output_text
    done = events[-1]
    assert done.type == "response.completed"
    assert done.response.output_text == reply.output_text


@pytest.mark.parametrize(
    "more",
    [
        {"previous_response_id": "resp_1"},
        {"background": True},
        {"conversation": "conv_1"},
        {"text": {"format": {"type": "json_object"}}},
        {"input": [{"role": "system", "content": "x"}]},
    ],
)
def test_a_response_refuses_what_cannot_act(door: Door, more: dict[str, Any]) -> None:
    with door.client() as client, pytest.raises(openai.BadRequestError):
        client.responses.create(**{"model": "documind-papers", "input": ASKED, **more})


def test_a_response_that_is_left_gives_its_place_back(door: Door) -> None:
    door.models.model = SlowModel()
    with door.client() as client:
        free = door.site.app.state.edge.streams
        begun = client.responses.create(model="documind-papers", input=ASKED, stream=True)
        next(iter(begun))
        assert free.taken == 1
        begun.close()
    deadline = time.monotonic() + WAIT_S
    while free.taken:
        assert time.monotonic() < deadline
        threading.Event().wait(0.01)


def test_a_failing_response_ends_with_an_error_event() -> None:
    responder = Responder(Completion("documind", "", "r1"), None)
    name, data, *_ = responder.end(ProviderTimeout("the host is silent")).decode().splitlines()
    assert name == "event: error"
    assert json.loads(data.removeprefix("data: ")) == {
        "type": "error", "sequence_number": 0, "code": "provider_timeout",
        "message": "the host is silent", "param": None,
    }  # fmt: skip
