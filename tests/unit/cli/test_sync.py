from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from app.cli.library import changes, exit_code, follow
from app.cli.output import check_library
from app.core.errors import InvalidInput, ProviderUnreachable
from app.ingest.sources.folders import IGNORE_FILE, SyncOutcome


def outcome(*failed: str, added: tuple[str, ...] = (), unchanged: int = 0) -> SyncOutcome:
    return SyncOutcome(
        "papers", added, (), (), unchanged, tuple((key, "unreadable") for key in failed)
    )


@pytest.mark.parametrize(
    ("done", "code"),
    [
        (outcome(), 0),
        (outcome("a", unchanged=1), 3),
        (outcome("a", added=("b",)), 3),
        (outcome("a"), 1),
        (replace(outcome(), kept=("a",)), 3),
    ],
)
def test_exit_codes(done: SyncOutcome, code: int) -> None:
    assert exit_code(done) == code


def test_an_unknown_library_is_named() -> None:
    with pytest.raises(InvalidInput, match="'private' is none of"):
        check_library("private")


def test_a_watch_syncs_after_changes_and_outlives_a_server_that_is_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.cli.library.DEBOUNCE_MS", 50)
    stop = threading.Event()
    answers: list[ProviderUnreachable | SyncOutcome] = [
        ProviderUnreachable("away"),
        outcome(added=("b.txt",)),
        outcome(),
    ]
    told: list[SyncOutcome] = []

    def once() -> SyncOutcome:
        answer = answers.pop(0)
        (tmp_path / f"file{len(answers)}.txt").write_text("the next change")
        if not answers:
            stop.set()
        if isinstance(answer, ProviderUnreachable):
            raise answer
        return answer

    starter = threading.Timer(0.3, lambda: (tmp_path / "a.txt").write_text("text"))
    starter.start()
    follow(tmp_path, once, told.append, lambda: None, stop)
    starter.join()
    assert told == [outcome(added=("b.txt",))]


def test_hidden_files_wake_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.cli.library.DEBOUNCE_MS", 50)
    stop = threading.Event()

    def work() -> None:
        (tmp_path / IGNORE_FILE).write_text("*.log")
        (tmp_path / ".git").mkdir()
        (tmp_path / ".git" / "index").write_text("x")
        (tmp_path / "seen.txt").write_text("x")

    starter = threading.Timer(0.3, work)
    starter.start()
    seen: set[str] = set()
    for group in changes(tmp_path, stop):
        seen |= {Path(path).name for _, path in group}
        if "seen.txt" in seen:
            stop.set()
    starter.join()
    assert seen == {"seen.txt"}


def test_a_watch_without_changes_says_that_it_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.cli.library.STILL_MS", 50)
    stop, told = threading.Event(), []

    def still() -> None:
        told.append("still")
        if len(told) == 2:
            stop.set()

    follow(tmp_path, lambda: pytest.fail("nothing changed"), lambda _: None, still, stop)
    assert len(told) == 2
