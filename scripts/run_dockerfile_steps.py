"""Execute the Dockerfile without a container engine.

`python -m scripts.run_dockerfile_steps [--keep DIR]`

Every COPY and RUN is done in an empty directory by an unprivileged user, with the environment of
its stage; absolute paths of the image are put below that directory. Then what the image holds is
made read-only and the entry point is started with a data directory of its own, until the health
check of the image passes and the server is ready. Left out, and said so: apt-get, useradd. Stage
bases are this machine's Python and Node.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import NoReturn

from scripts.dockerfile import Instruction, Stage, ignored, patterns_of, stages

CONTEXT = Path(__file__).resolve().parent.parent
SKIPPED = ("apt-get", "useradd")
NOBODY = 65534
SYSTEM = "/usr/local/bin:/usr/bin"
START_S = 120.0
PASSED_ON = ("PIP_", "NPM_", "SSL_", "LANG")
"""Beginnings of names in this environment that a build needs: where packages come from, which
certificates count."""


@dataclass
class Build:
    """The directory that stands for the image, and the stage's environment."""

    base: Path
    env: dict[str, str] = field(default_factory=dict)
    workdir: PurePosixPath = field(default_factory=lambda: PurePosixPath("/"))
    owned: set[str] = field(default_factory=set)
    """Folders of the image that are its own: paths below them in ENV are meant here."""

    @property
    def root(self) -> Path:
        """Return the stage's root; equal for all stages, so a venv can be copied."""
        return self.base / "root"

    def place(self, path: str) -> Path:
        """Return where a path of the image is here."""
        return self.root / str(self.workdir / path).lstrip("/")

    def here(self, value: str) -> str:
        """Return an environment value with the image's own paths put where they are here."""
        parts = [
            str(self.root) + part if any(_below(part, own) for own in self.owned) else part
            for part in value.split(":")
        ]
        return ":".join(parts) if "://" not in value else value

    def run(self, command: list[str], **options: object) -> subprocess.Popen[bytes]:
        """Start a command as the plain user."""
        who = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
        cwd = self.place(".")
        return subprocess.Popen(  # type: ignore[call-overload, no-any-return]  # noqa: S603
            command, cwd=cwd, env=self.env, start_new_session=True, **who, **options
        )


def _below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder}/")


def fail(message: str) -> NoReturn:
    sys.exit(f"FAILED: {message}")


def copy(build: Build, one: Instruction) -> None:
    """Execute a COPY like a builder: folders by content, without ignored files."""
    *sources, target = one.words()
    to = build.place(target)
    stage = one.flags.get("from")
    patterns = [] if stage else patterns_of(CONTEXT / ".dockerignore")
    for source in sources:
        origin = build.base / "stages" / stage / source.lstrip("/") if stage else CONTEXT / source
        if not origin.exists():
            fail(f"COPY {source}: it is not there")
        if origin.is_dir():
            for file in sorted(origin.rglob("*")):
                relative = file.relative_to(CONTEXT) if not stage else file.relative_to(origin)
                if (file.is_file() or file.is_symlink()) and (
                    stage or not ignored(PurePosixPath(relative.as_posix()), patterns)
                ):
                    put(file, to / file.relative_to(origin))
        else:
            put(origin, to / origin.name if target.endswith("/") else to)


def put(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(source, target, follow_symlinks=False)


def own(folder: Path) -> None:
    """Give a tree to the plain user."""
    if os.geteuid() == 0:
        for path in [folder, *folder.rglob("*")]:
            os.chown(path, NOBODY, NOBODY, follow_symlinks=False)


def perform(build: Build, stage: Stage) -> None:
    build.root.mkdir()
    build.workdir = PurePosixPath("/")
    build.env = {
        name: value
        for name, value in os.environ.items()
        if name.startswith(PASSED_ON) or name.lower().endswith("_proxy")
    }
    build.env |= {
        "PATH": f"{build.base / 'tools'}:/usr/local/bin:/usr/bin:/bin",
        "HOME": str(build.base / "home"),
        "npm_config_cache": str(build.base / "npm"),
    }
    for one in stage.instructions:
        started = time.monotonic()
        match one.name:
            case "WORKDIR":
                build.workdir /= one.text
                build.place(".").mkdir(parents=True, exist_ok=True)
            case "ENV":  # build arguments are empty
                for name, value in one.pairs().items():
                    known = value.replace("${PATH}", build.env["PATH"])
                    build.env[name] = build.here(re.sub(r"\$\{\w+\}", "", known))
            case "VOLUME":
                build.place(one.text).mkdir(parents=True, exist_ok=True)
            case "COPY":
                copy(build, one)
            case "RUN":
                run(build, one)
        if one.name in {"RUN", "COPY"}:
            print(f"  {time.monotonic() - started:6.1f} s  {one.name} {one.text}", flush=True)


def run(build: Build, one: Instruction) -> None:
    """Do a RUN, or say that it is left out."""
    if any(word in one.text for word in SKIPPED):
        print(f"  left out, it needs root: RUN {one.text}")
        return
    own(build.root)
    if build.run(["/bin/sh", "-c", one.text]).wait() != 0:
        fail(f"RUN {one.text}")


def prepare(base: Path, python: str) -> Build:
    """Make the directory that stands for the image, with an interpreter."""
    for folder in ("stages", "tools", "home", "npm"):
        (base / folder).mkdir(parents=True)
    wrapper = base / "tools" / "python"
    wrapper.write_text(f'#!/bin/sh\nexec {python} "$@"\n', encoding="utf-8")
    wrapper.chmod(0o755)
    base.chmod(0o755)
    own(base)
    return Build(base)


def build_stages(build: Build, found: list[Stage]) -> None:
    """Do every stage; the last one stays in the directory of the stage in work."""
    build.owned = {
        one.text
        for stage in found
        for one in stage.instructions
        if one.name in {"WORKDIR", "VOLUME"}
    }
    for stage in found:
        print(f"stage {stage.name} on {stage.base}", flush=True)
        perform(build, stage)
        if stage is not found[-1]:
            build.root.rename(build.base / "stages" / stage.name)


def start(build: Build, stage: Stage) -> None:
    """Start the image's command, read-only but for its data; await its health."""
    last = {one.name: one for one in stage.instructions}
    data = build.place(last["VOLUME"].text)
    own(build.root)
    for path in build.root.rglob("*"):
        if not path.is_symlink() and data not in (path, *path.parents):
            path.chmod(path.stat().st_mode & ~0o222)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    build.env |= {
        "API_HOST": "127.0.0.1",
        "API_PORT": port,
        "DATA_DIR": str(data),
        "TMPDIR": str(build.base / "home"),
    }
    started = time.monotonic()
    process = build.run(
        [
            shutil.which(last["ENTRYPOINT"].words()[0], path=build.env["PATH"])
            or fail("no entry point"),
            *last["CMD"].words(),
        ]
    )
    try:
        check = last["HEALTHCHECK"].text.partition("CMD ")[2].replace("8001", port)
        words = Instruction("CMD", check).words()
        while build.run(words, stderr=subprocess.DEVNULL).wait() != 0:
            if process.poll() is not None or time.monotonic() - started > START_S:
                fail("the server does not pass its health check")
            time.sleep(0.2)
        print(f"  {time.monotonic() - started:6.1f} s  health check passes", flush=True)
        while b'"ready"' not in _get(port, "/health/ready"):
            if process.poll() is not None or time.monotonic() - started > START_S:
                fail("the server is not ready")
            time.sleep(0.2)
        print(f"  {time.monotonic() - started:6.1f} s  ready", flush=True)
        if b'id="root"' not in _get(port, "/"):
            fail("the page is not served")
    finally:
        process.send_signal(signal.SIGTERM)
        if process.wait(40) not in (0, -signal.SIGTERM):
            fail(f"the server ended with {process.returncode}")


def _get(port: str, path: str) -> bytes:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as reply:
            return bytes(reply.read())
    except OSError:
        return b""


def interpreter() -> str:
    """Return a Python that the plain user, who cannot read root's home, can run."""
    if os.geteuid() != 0:
        return sys.executable
    return (
        shutil.which("python3.11", path=SYSTEM)
        or shutil.which("python3.12", path=SYSTEM)
        or fail("no Python 3.11 in " + SYSTEM)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--python",
        default=interpreter(),
        help="interpreter that stands for the image's; the plain user must be able to run it",
    )
    parser.add_argument(
        "--keep", type=Path, help="build here, in a folder that does not exist yet, and leave it"
    )
    options = parser.parse_args()
    began = time.monotonic()
    base = options.keep or Path(tempfile.mkdtemp(prefix="dockerfile-"))
    try:
        found = stages((CONTEXT / "Dockerfile").read_text(encoding="utf-8"))
        build = prepare(base, options.python)
        build_stages(build, found)
        start(build, found[-1])
        print(f"done in {time.monotonic() - began:.0f} s")
    finally:
        if options.keep is None:
            shutil.rmtree(base, ignore_errors=True)


if __name__ == "__main__":
    main()
