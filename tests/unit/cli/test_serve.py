"""What `documind serve` does around the server."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app.api import serving
from app.cli import serve
from app.core.errors import Conflict
from app.settings import Settings
from app.storage.files.lock import DirectoryLock
from tests.fakes.http_double import Canned, HttpDouble


class _Server:
    """Is done at once."""

    def run(self) -> None:
        """Serve nothing."""


@pytest.fixture
def thawed() -> Iterator[None]:
    gc.unfreeze()
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("thawed")
def test_what_is_loaded_when_ready_is_out_of_the_collectors_sight(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    frozen: list[int] = []

    def make_app(
        _: Settings, __: DirectoryLock, *, on_ready: Callable[[], None], **_other: object
    ) -> None:
        frozen.append(gc.get_freeze_count())
        on_ready()
        frozen.append(gc.get_freeze_count())

    monkeypatch.setattr(serve, "make_app", make_app)
    monkeypatch.setattr(serving, "make_server", lambda *_: _Server())
    monkeypatch.setattr(serving, "configure", lambda *_, **__: None)
    with DirectoryLock([tmp_path], "http://127.0.0.1:8001") as lock:
        serve.run(Settings(data_dir=tmp_path), lock)
    assert frozen[0] == 0
    assert frozen[1] > 1000, (
        "a full collection would go through all of it with every thread stopped"
    )
    assert "is ready" in "".join(capsys.readouterr())


@pytest.mark.parametrize(
    ("reply", "cure"),
    [
        (
            '{"status": "ready", "generator": "extractive"}',
            "a DocuMind: show it with documind open",
        ),
        ("<html>hello</html>", "another program: end that one"),
    ],
)
def test_a_port_that_is_taken_says_by_whom(tmp_path: Path, reply: str, cure: str) -> None:
    with HttpDouble() as other:
        other.queue(Canned(body=reply.encode()))
        settings = Settings(_env_file=None, data_dir=tmp_path, api_port=other.server_port)
        with pytest.raises(Conflict, match=cure):
            serve.check_port(settings)
