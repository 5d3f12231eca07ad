"""A conversation of six turns over HTTP, on the Ollama double: grounded, pronoun, new topic, off topic, thanks, what was said."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from app.core.types import REFUSAL
from app.models.ollama import OllamaHost
from app.models.ollama_adapters import OllamaGenerator
from app.models.retries import CallSlots
from tests.api.conftest import LIBRARY, Site, site
from tests.fakes.generators import FixedModels
from tests.fakes.ollama_double import OllamaDouble


@dataclass
class Chat:
    """One conversation, and the double that speaks in it."""

    site: Site
    double: OllamaDouble
    conversation_id: str | None = None

    def say(self, message: str, *model_says: str) -> dict[str, object]:
        """Say something while the model is going to say this: a rewrite where there is a past, then the answer."""
        self.double.say(*model_says)
        before = self.calls
        reply = self.site.client.post(
            "/api/v1/chat",
            json={"message": message, "library": "papers", "conversation_id": self.conversation_id},
        )
        assert reply.status_code == 200, reply.text
        found: dict[str, object] = reply.json()
        self.conversation_id = str(found["conversation_id"])
        assert self.calls - before == len(model_says), (
            "the model was asked as often as it had something to say"
        )
        return found

    @property
    def calls(self) -> int:
        return len(self.double.bodies("/api/chat"))

    def last_prompt(self) -> str:
        messages = self.double.bodies("/api/chat")[-1]["messages"]
        assert isinstance(messages, list)
        return "\n".join(message["content"] for message in messages)


@pytest.fixture
def chat(tmp_path: Path) -> Iterator[Chat]:
    with OllamaDouble() as double:
        host = OllamaHost(double.url, connect_timeout_s=1.0, read_timeout_s=10.0)
        model = OllamaGenerator(host, "llama3.2", slots=CallSlots(2, 5.0, host.name))
        models = FixedModels(model=model, helper=model)
        assert (models.select().model, models.select().helper) == (model, model)
        with site(tmp_path, models) as opened:
            status, _ = opened.upload(*((name, text.encode()) for name, text in LIBRARY.items()))
            assert status == 201
            yield Chat(opened, double)
        host.http.close()


def titles(answer: dict[str, object]) -> list[str]:
    sources = answer["sources"]
    assert isinstance(sources, list)
    return [source["title"] for source in sources]


def test_six_turns(chat: Chat) -> None:
    grounded = chat.say(
        "What is the melting point of copper?",
        "The melting point of copper is 1085 degrees Celsius [1].",
    )
    assert (grounded["status"], grounded["rewritten_query"]) == ("answered", None)
    assert titles(grounded)[0] == "Copper"
    assert (
        "Its melting point is 1085 degrees Celsius."
        in grounded["sentences"][0]["citations"][0]["quote"]  # type: ignore[index]
    )

    pronoun = chat.say(
        "And does it conduct well?", "Does copper conduct well?", "Yes, copper conducts well [1]."
    )
    assert pronoun["rewritten_query"] == "Does copper conduct well?"
    assert titles(pronoun)[0] == "Copper"
    assert "And does it conduct well?" in chat.last_prompt()
    assert "1085 degrees Celsius" in chat.last_prompt()

    switched = chat.say(
        "How long do lions sleep?", "Lions live in prides and sleep twenty hours [1]."
    )
    assert titles(switched)[0] == "Lions"
    assert "Copper" not in titles(switched)
    assert switched["sentences"][0]["verdict"] == "supported"  # type: ignore[index]

    away = chat.say("Who won the chess championship in Reykjavik?", REFUSAL)
    assert (away["status"], away["answer"], away["sources"]) == ("abstained", REFUSAL, [])

    thanks = chat.say("Thank you very much!")
    assert (thanks["status"], thanks["sources"], thanks["generator"]) == ("chitchat", [], "none")

    recalled = chat.say("What have we discussed?")
    assert recalled["status"] == "conversation"
    for question in ("melting point of copper", "How long do lions sleep?"):
        assert question in str(recalled["answer"])
    assert "Thank you" not in str(recalled["answer"])

    turns = chat.site.client.get(f"/api/v1/conversations/{chat.conversation_id}").json()["turns"]
    assert [turn["role"] for turn in turns] == ["user", "assistant"] * 6
