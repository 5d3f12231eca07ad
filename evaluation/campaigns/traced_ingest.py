"""Trace a server's system calls: is an upload on disk before its answer?

    make trace-ingest        # needs strace; into evaluation/reports/traced_ingest.{json,md}

Every file under the data directory that was written since the server was ready must be synced after
its last write, and every directory in which a file was made or renamed after that, before the bytes
of the answer go to the socket.
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from app.client import FileToSend, Wait
from evaluation.lib.reports import Line, table, write
from evaluation.lib.served import Served

CALLS = "openat,write,pwrite64,writev,pwritev,ftruncate,fsync,fdatasync,msync,rename,renameat,renameat2,unlink,unlinkat,sendto,sendmsg"
NOT_KEPT = (
    "uploads/",
    "models/",
    ".lock",
    "catalog.sqlite3-shm",
    "chroma/",
    ".tantivy-",
    "/.managed.json",
)
"""Below the data directory, but nothing an acknowledgement rests on: staging,
locks, rebuilt files."""

_LINE = re.compile(r"^(?P<pid>\d+)\s+(?P<rest>.*)$")
_FD_PATH = re.compile(r"^\d+<(?P<path>[^>]*)>")
_PATHS = re.compile(r'"(?P<path>[^"]*)"')


@dataclass
class Findings:
    """Findings between a moment and the answer."""

    writes: int = 0
    synced_files: set[str] = field(default_factory=set)
    synced_directories: set[str] = field(default_factory=set)
    unsynced_files: dict[str, int] = field(default_factory=dict)
    """Files with writes after their last sync, and how many."""
    unsynced_directories: set[str] = field(default_factory=set)
    """Directories whose entries changed after their last sync."""
    answered: bool = False

    @property
    def holds(self) -> bool:
        """Return whether an answer left and nothing was unsynced."""
        return (
            self.answered
            and not self.unsynced_files
            and not self.unsynced_directories
            and self.writes > 0
        )


def whole_calls(lines: Iterable[str]) -> Iterable[str]:
    """Yield calls in the order they returned; join those that strace split."""
    begun: dict[str, str] = {}
    for line in lines:
        found = _LINE.match(line.rstrip("\n"))
        if found is None:
            continue
        pid, rest = found["pid"], found["rest"]
        if rest.endswith("<unfinished ...>"):
            begun[pid] = rest.removesuffix("<unfinished ...>").rstrip()
        elif rest.startswith("<... "):
            yield begun.pop(pid, "") + rest[rest.index(">") + 1 :].strip()
        else:
            yield rest


def examine(calls: Iterable[str], data_dir: str, answer: str) -> Findings:
    """Follow writes and syncs until the answer whose first bytes are `answer` leaves."""
    found = Findings()
    for call in calls:
        name, _, rest = call.partition("(")
        if name in _SENDS and answer in rest:
            found.answered = True
            break
        follow = _FOLLOWED.get(name)
        if follow is not None and "= -1 " not in rest.rpartition(")")[2]:
            follow(found, rest, data_dir)
    return found


def _wrote(found: Findings, rest: str, data_dir: str) -> None:
    path = _of_descriptor(rest)
    if _kept(path, data_dir):
        found.writes += 1
        found.unsynced_files[path] = found.unsynced_files.get(path, 0) + 1


def _synced(found: Findings, rest: str, data_dir: str) -> None:
    del data_dir
    path = _of_descriptor(rest)
    if found.unsynced_files.pop(path, None) is not None:
        found.synced_files.add(path)
    if path in found.unsynced_directories:
        found.unsynced_directories.discard(path)
        found.synced_directories.add(path)


def _renamed(found: Findings, rest: str, data_dir: str) -> None:
    paths = [_absolute(path, rest) for path in _PATHS.findall(rest)]
    if len(paths) == 2 and _kept(paths[1], data_dir):
        if paths[0] in found.unsynced_files:
            found.unsynced_files[paths[1]] = found.unsynced_files.pop(paths[0])
        found.unsynced_directories.add(str(Path(paths[1]).parent))


def _made(found: Findings, rest: str, data_dir: str) -> None:
    """Record that a file made in a directory changes it; the database's own are older."""
    path = next((_absolute(path, rest) for path in _PATHS.findall(rest)), "")
    if (
        "O_CREAT" in rest
        and _kept(path, data_dir)
        and not path.startswith(f"{data_dir}/catalog.sqlite3")
    ):
        found.unsynced_directories.add(str(Path(path).parent))


def _removed(found: Findings, rest: str, data_dir: str) -> None:
    del data_dir
    for path in _PATHS.findall(rest):
        found.unsynced_files.pop(_absolute(path, rest), None)


_SENDS = ("sendto", "sendmsg", "write", "writev")
_FOLLOWED: Mapping[str, Callable[[Findings, str, str], None]] = {
    **dict.fromkeys(("write", "pwrite64", "writev", "pwritev", "ftruncate", "msync"), _wrote),
    **dict.fromkeys(("fsync", "fdatasync"), _synced),
    **dict.fromkeys(("rename", "renameat", "renameat2"), _renamed),
    **dict.fromkeys(("unlink", "unlinkat"), _removed),
    "openat": _made,
}


def _of_descriptor(rest: str) -> str:
    found = _FD_PATH.match(rest)
    return found["path"].removesuffix(" (deleted)") if found else ""


def _absolute(path: str, rest: str) -> str:
    """Return a call's absolute path; strace shows the directory's descriptor."""
    if path.startswith("/"):
        return path
    base = re.search(r"<([^>]*)>", rest)
    return f"{base[1]}/{path}" if base else path


def _kept(path: str, data_dir: str) -> bool:
    return path.startswith(data_dir) and not any(part in path[len(data_dir) :] for part in NOT_KEPT)


class TracedServer(Served):
    """The real server under strace."""

    def __init__(self, data_dir: Path, trace: Path) -> None:
        """Write the calls to the file `trace`."""
        super().__init__(data_dir)
        self.command = [
            *"strace -f -y -qq -s 64 -e".split(), f"trace={CALLS}", "-o", str(trace), *Served.command,
        ]  # fmt: skip

    def close(self) -> None:
        """Stop the server; strace ignores signals until then and ends with it."""
        self.client.close()
        for child in psutil.Process(self.process.pid).children():
            child.terminate()
        self.process.wait(60)


def traced(directory: Path) -> dict[str, Findings]:
    """Upload a new and a changed document at two levels; return the findings."""
    data_dir, trace = directory / "data", directory / "trace"
    results: dict[str, Findings] = {}
    uploads: Sequence[tuple[str, Wait, str]] = (
        ("accepted (202)", "false", "HTTP/1.1 202"),
        ("acknowledged (201), a new document", "text", "HTTP/1.1 201"),
        ("acknowledged (201), a replacement", "text", "HTTP/1.1 201"),
    )
    with TracedServer(data_dir, trace) as server:
        for n, (name, wait, answer) in enumerate(uploads):
            time.sleep(2.0)  # what the server does by itself after a start comes to rest
            begin = trace.stat().st_size
            path = directory / ("a.txt" if n else "first.txt")
            path.write_text(f"Walruses whistle in the wind, {n} times. " * 20, "utf-8")
            server.client.ingest([FileToSend(path)], "papers", wait=wait)
            time.sleep(0.5)
            with trace.open(encoding="utf-8", errors="replace") as file:
                file.seek(begin)
                results[name] = examine(whole_calls(file), str(data_dir), answer)
    return results


def main() -> int:
    if shutil.which("strace") is None:
        raise SystemExit("strace is not here; on Debian: apt-get install strace")
    with tempfile.TemporaryDirectory(prefix="documind-trace-") as temporary:
        results = traced(Path(temporary))
    shape = re.compile(r"[0-9a-f]{32,64}|\.tmp\w+|tmp\w{6,}")

    def names(paths: Iterable[str]) -> str:
        below = (path.partition("/data")[2].lstrip("/") for path in paths)
        return ", ".join(sorted({shape.sub("*", path) or "DATA_DIR" for path in below})) or "none"

    lines = [
        Line(f"{name}: on disk", found.holds, 1, at_most=False) for name, found in results.items()
    ]
    head = ("upload", "writes that count", "files not synced", "directories not synced", "synced")
    rows = [
        (
            name,
            found.writes,
            names(found.unsynced_files),
            names(found.unsynced_directories),
            names([*found.synced_files, *found.synced_directories]),
        )
        for name, found in results.items()
    ]
    remarks = [
        "The system calls of a real server, from the arrival of an upload to the first byte of its"
        " answer."
    ]
    title, page = "On disk before the answer", table(head, rows)
    return write("traced_ingest", title, remarks, lines, {}, "make trace-ingest", tables=page)


if __name__ == "__main__":
    sys.exit(main())
