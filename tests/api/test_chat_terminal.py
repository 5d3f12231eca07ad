"""`documind chat` on a pseudo-terminal: a real process against a real server."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from app.core.errors import ProviderTimeout
from app.storage.files.lock import DirectoryLock
from tests.api.conftest import LIBRARY, Site, listening, site
from tests.api.test_streaming import SlowModel
from tests.fakes.generators import FixedModels, ScriptedGenerator, tokens_of
from tests.fakes.terminal import CTRL_C, CTRL_D, Terminal

ROOT = Path(__file__).parents[2]


@dataclass
class Room:
    """A server with papers, and a data directory whose lock names it."""

    site: Site
    models: FixedModels
    directory: Path

    @contextmanager
    def chat(self, *arguments: str) -> Iterator[Terminal]:
        command = [sys.executable, "-m", "app", "chat", "--library", "papers", *arguments]
        with Terminal(command, env={"DATA_DIR": str(self.directory)}, cwd=ROOT) as terminal:
            terminal.expect("/help lists the commands")
            yield terminal


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Room]:
    models = FixedModels()
    directory = tmp_path_factory.mktemp("chat")
    with site(directory / "server", models) as opened:
        status, _ = opened.upload(*((name, text.encode()) for name, text in LIBRARY.items()))
        assert status == 201
        with listening(opened.app, lifespan="off") as url, DirectoryLock([directory / "lock"], url):
            yield Room(opened, models, directory / "lock")


@pytest.fixture(autouse=True)
def nobody_answers(room: Room) -> None:
    room.models.model = room.models.helper = None


def test_a_conversation_and_every_command(room: Room) -> None:
    with room.chat() as terminal:
        terminal.line("/sources")
        terminal.expect("no answer with sources yet")
        terminal.line("What is the melting point of copper?")
        terminal.expect("1085 degrees Celsius [1]")
        terminal.expect("source")
        terminal.line("/sources")
        terminal.expect("\u201cIts melting point is 1085 degrees Celsius.\u201d")
        terminal.line("/history")
        terminal.expect("you: What is the melting point of copper?")
        terminal.expect("it: ")
        terminal.line("thank you!")
        terminal.expect("welcome")
        terminal.line("/mode")
        terminal.expect("mode: as the server is set")
        terminal.line("/mode datasets")
        terminal.expect("mode: datasets")
        terminal.line("/mode poetry")
        terminal.expect("mode 'poetry' is none of general, compare")
        terminal.line("/strategy hyde")
        terminal.expect("strategy: hyde")
        terminal.line("/library public")
        terminal.expect("library: public")
        terminal.line("/library papers")
        terminal.expect("library: papers")
        terminal.line("/topics")
        terminal.expect("(")
        terminal.line("/dance")
        terminal.expect("there is no command '/dance'")
        terminal.line("/help")
        terminal.expect("Ctrl-C stops the answer")
        terminal.line("/reset")
        terminal.expect("a new conversation begins")
        terminal.line("/history")
        terminal.expect("nothing has been said yet")
        terminal.line("/quit")
        assert terminal.end() == 0
    held = room.site.client.get("/api/v1/conversations").json()["conversations"]
    assert [one["title"] for one in held] == ["What is the melting point of copper?"]
    turns = room.site.client.get(f"/api/v1/conversations/{held[0]['id']}").json()["turns"]
    assert [turn["role"] for turn in turns] == ["user", "assistant"] * 2
    with room.chat("--conversation", held[0]["id"]) as terminal:
        terminal.line("what have we discussed?")
        terminal.expect("melting point of copper")
        terminal.expect("> ")
        threading.Event().wait(0.5)  # the prompt is written before the line is read
        terminal.type(CTRL_D)
        assert terminal.end() == 0


def test_the_quote_is_there_while_a_model_reads_and_says_how_much(room: Room) -> None:
    model = SlowModel("")
    room.models.model = model
    with room.chat() as terminal:
        terminal.line("What is the melting point of copper?")
        terminal.expect("Its melting point is 1085 degrees Celsius [1].")
        terminal.expect("fake:slow is reading about ")
        assert model.started.acquire(timeout=10)
        model.go.set()
        terminal.expect("Copper melts at 1085 degrees Celsius [1].")
        terminal.line("/quit")
        assert terminal.end() == 0


def test_control_c_stops_the_answer_and_only_the_answer(room: Room) -> None:
    model = SlowModel("Copper melts at")
    room.models.model = model
    before = len(room.site.client.get("/api/v1/conversations").json()["conversations"])
    with room.chat() as terminal:
        terminal.line("What is the melting point of copper?")
        terminal.expect("Copper melts")
        assert model.started.acquire(timeout=10)
        pressed = time.monotonic()
        terminal.type(CTRL_C)
        while model.active:
            assert time.monotonic() - pressed < 60  # else it hangs
            threading.Event().wait(0.005)
        terminal.expect("stopped")
        terminal.expect("> ")
        terminal.type("half a line")
        terminal.expect("half a line")  # before that, nothing reads keys yet
        terminal.press(CTRL_C, "/quit leaves")
        room.models.model = ScriptedGenerator("Copper melts at 1085 degrees Celsius [1].")
        terminal.line("When does copper melt?")
        terminal.expect("Copper melts at 1085 degrees Celsius [1].")
        terminal.line("/history")
        told = terminal.expect("it: Copper melts")
        assert "you: When does copper melt?" in told
        assert "you: What is the melting point of copper?" in told  # kept, not answered
        terminal.line("/quit")
        assert terminal.end() == 0
    assert model.stopped == 1
    assert len(room.site.client.get("/api/v1/conversations").json()["conversations"]) == before + 1


def test_the_quote_stands_in_for_a_provider_that_fails(room: Room) -> None:
    room.models.model = ScriptedGenerator(
        [*tokens_of("Copper melts at")[:-1], ProviderTimeout("the model went silent")],
        "It melts at 1085 degrees Celsius [1].",
    )
    with room.chat() as terminal:
        terminal.line("What is the melting point of copper?")
        terminal.expect("Its melting point is 1085 degrees Celsius [1].")
        terminal.expect("(the model went silent); the answer quotes your documents instead")
        terminal.line("What is the melting point of copper?")
        terminal.expect("It melts at 1085 degrees Celsius [1].")
        terminal.line("/quit")
        assert terminal.end() == 0
