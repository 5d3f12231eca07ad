"""The program that executes a Dockerfile without a container engine, on a small one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from scripts import run_dockerfile_steps as steps
from scripts.dockerfile import stages

DOCKERFILE = """
# two stages
FROM python:3.11-slim AS build
WORKDIR /opt/thing
ENV GREETING=hello WHERE=/opt/thing/bin:/usr/bin PATH=/opt/thing/bin:${PATH}
COPY src/ src/
COPY one.txt ./
RUN echo "$GREETING $(id -u)" > out.txt && \\
    python -c "import os; print(os.getcwd())" > cwd.txt
RUN apt-get install -y nothing

FROM python:3.11-slim
WORKDIR /opt/thing
COPY --from=build /opt/thing /opt/thing
"""


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> steps.Build:
    context = tmp_path / "context"
    (context / "src" / "deep").mkdir(parents=True)
    (context / "src" / "deep" / "kept.txt").write_text("kept")
    (context / "src" / "deep" / "secret.env").write_text("no")
    (context / "one.txt").write_text("1")
    (context / ".dockerignore").write_text("**/*.env\n")
    monkeypatch.setattr(steps, "CONTEXT", context)
    for folder in (tmp_path, *tmp_path.parents):  # a plain user has to reach it
        if folder.owner() == Path.home().owner() and "pytest-of" in str(folder):
            folder.chmod(0o755)
    base = tmp_path / "image"
    build = steps.prepare(base, sys.executable if os.geteuid() else "/usr/bin/python3")
    steps.build_stages(build, stages(DOCKERFILE))
    return build


def test_steps_are_done_by_a_plain_user_in_their_directory(
    built: steps.Build, capsys: pytest.CaptureFixture[str]
) -> None:
    del capsys
    place = built.root / "opt/thing"
    who = steps.NOBODY if os.geteuid() == 0 else os.geteuid()
    assert (place / "out.txt").read_text() == f"hello {who}\n"
    assert (place / "cwd.txt").read_text() == f"{place}\n"
    assert (place / "one.txt").read_text() == "1"
    assert (place / "src/deep/kept.txt").read_text() == "kept"
    assert not (place / "src/deep/secret.env").exists()


def test_paths_of_the_image_are_below_its_directory(tmp_path: Path) -> None:
    build = steps.Build(tmp_path, owned={"/opt/thing"})
    assert build.here("/opt/thing/bin:/usr/bin") == f"{tmp_path}/root/opt/thing/bin:/usr/bin"
    assert build.here("/opt/things") == "/opt/things"
    assert build.here("http://127.0.0.1:1") == "http://127.0.0.1:1"


def test_a_step_that_fails_ends_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps.Build, "run", lambda *_, **__: subprocess.Popen(["false"]))
    build = steps.prepare(tmp_path / "image", sys.executable)
    with pytest.raises(SystemExit, match="FAILED: RUN exit 3"):
        steps.build_stages(build, stages("FROM a\nWORKDIR /x\nRUN exit 3\n"))
    with pytest.raises(SystemExit, match="it is not there"):
        steps.build_stages(
            steps.prepare(tmp_path / "other", sys.executable),
            stages("FROM a\nCOPY nothing-like-this ./\n"),
        )
