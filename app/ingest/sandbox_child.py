"""Run the parsing child: read requests, parse under limits, reply. Imports nothing but parsers."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import select
import signal
import sys
import threading
from multiprocessing.connection import Connection
from pathlib import Path

from app.core.errors import DocuMindError, Unreadable
from app.core.types import Highlight, PageText, PageWords
from app.ingest.options import IngestOptions
from app.ingest.parsers import DirectParser
from app.ingest.sandbox import Header, pack_document, pack_error, receive, send

_OPEN_FILES = 64
_NICENESS = 5
"""On few processors, a question takes priority over a file being parsed."""


def main(control_fd: int, options_json: str) -> None:
    """Serve requests on the control socket until the other side closes it."""
    options = IngestOptions(**json.loads(options_json))
    control = Connection(control_fd)
    _limit_process(options)
    threading.Thread(target=_die_with_parent, args=(control_fd,), daemon=True).start()
    parser = DirectParser(options)
    send(control, {"ready": os.getpid()})
    while True:
        try:
            request = receive(control)
        except EOFError:
            return
        _limit_cpu(options.parse_cpu_s)
        send(control, *_answer(parser, *request))


def _answer(
    parser: DirectParser, request: Header, content: bytes
) -> tuple[dict[str, object], bytes]:
    source = Path(request["path"]) if request["path"] is not None else content
    try:
        if request["operation"] == "words":
            return {"words": parser.page_words(source, request["page"])}, b""
        if request["operation"] == "addresses":
            return {"listing": parser.addresses(content, request["filename"])}, b""
        words = [PageWords.from_json(page.values()) for page in request["words"]]
        if request["operation"] == "boxes":
            pages = [PageText(**page) for page in request["pages"]]
            return {"boxes": parser.page_boxes(source, pages, words)}, b""
        if request["operation"] == "highlight":
            highlights = [
                Highlight(tuple(PageText(**page) for page in one["pages"]), one["note"])
                for one in request["highlights"]
            ]
            return {}, parser.highlighted(source, highlights, words)
        return pack_document(parser.parse(source, request["filename"], words=words))
    except DocuMindError as exc:
        return pack_error(exc), b""
    except MemoryError:
        reason = "needs more memory than a parse may use; split it"
    except RecursionError:
        reason = "is nested too deeply; simplify it"
    return pack_error(Unreadable(f"{request['filename']!r} {reason}")), b""


def _limit_process(options: IngestOptions) -> None:
    """Bound memory, files and core dumps; writing to files is not possible at all."""
    limits = {
        "RLIMIT_AS": options.parse_memory_bytes,
        "RLIMIT_FSIZE": 0,
        "RLIMIT_NOFILE": _OPEN_FILES,
        "RLIMIT_CORE": 0,
    }
    for name, value in limits.items():
        with contextlib.suppress(ValueError, OSError, AttributeError):  # macOS refuses RLIMIT_AS
            resource.setrlimit(getattr(resource, name), (value, value))
    os.nice(_NICENESS)


def _limit_cpu(seconds: int) -> None:
    """Allow `seconds` of processor time from now; SIGXCPU kills the process after."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    allowed = int(usage.ru_utime + usage.ru_stime) + 1 + seconds
    resource.setrlimit(resource.RLIMIT_CPU, (allowed, resource.getrlimit(resource.RLIMIT_CPU)[1]))


def _die_with_parent(control_fd: int) -> None:
    """End the process and its group, an engine of OCR, once the other side is gone, in a parse too.

    PR_SET_PDEATHSIG would fire when the *thread* that started this process ends, and servers retire
    threads.
    """
    poll = select.poll()
    poll.register(control_fd, 0)  # hang-ups are reported for any event mask
    while not any(event & (select.POLLHUP | select.POLLERR) for _, event in poll.poll()):
        pass
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
