"""Typed client of our own HTTP API, for the CLI, scripts and benchmarks.

Replies are JSON objects as API.md describes them. Errors of the server come back as the classes of `app.core.errors`, found by
their code; a server that cannot be reached is ProviderUnreachable.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Literal, Self, cast
from urllib.parse import quote, urlsplit

import requests

from app.core import errors
from app.core.hosts import is_loopback

Json = Mapping[str, object]
"""A JSON object as it came."""
Wait = Literal["true", "text", "false"]
_PIECE_BYTES = 256 * 1024
FINISHED = frozenset({"done", "failed", "cancelled"})


@dataclass(frozen=True, slots=True)
class FileToSend:
    """A file for ingest; `source_key` None takes the file's name."""

    path: Path
    source_key: str | None = None


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """One server-sent event: `meta`, `sources`, `token`, `final` of an answer, `job` of a job."""

    name: str
    data: Json


class DocuMindClient:
    """Talks to one server; keeps its connections. Not for use from several threads at once."""

    def __init__(self, base_url: str, api_key: str = "", *, timeout_s: float = 600.0, connect_timeout_s: float = 5.0) -> None:
        """Point at a server; nothing is sent yet.

        Args:
            base_url: Like `http://127.0.0.1:8001`, with the path prefix when there is one.
            api_key: Sent as X-API-Key when not empty.
            timeout_s: Longest silence of the server, in seconds; a stream has a heartbeat every 10.
            connect_timeout_s: Longest wait for a connection, in seconds.
        """
        self._base = base_url.rstrip("/")
        self._timeout = (connect_timeout_s, timeout_s)
        self._session = requests.Session()
        self._session.trust_env = False  # a proxy of the environment has no business with a server on this machine
        if is_loopback(urlsplit(self._base).hostname or ""):
            self._session.headers["Accept-Encoding"] = "identity"  # packing costs both ends more than loopback does
        if api_key:
            self._session.headers["X-API-Key"] = api_key

    @property
    def base_url(self) -> str:
        """Where the server is, without a slash at the end."""
        return self._base

    def close(self) -> None:
        """Close the connections."""
        self._session.close()

    def __enter__(self) -> Self:
        """Return the client."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        """Close the connections."""
        self.close()

    # --- status -----------------------------------------------------------------------------------------------------------------

    def health(self) -> Json:
        """Return who answers and embeds, and whether their hosts can be reached."""
        return self._get("/health")

    def ready(self) -> Json:
        """Return whether the server answers requests, and what is missing if not."""
        return self._read(self._send("GET", "/health/ready"), accept=(200, 503))

    def libraries(self) -> Json:
        """Return both libraries with their counts."""
        return self._get("/api/v1/libraries")

    def stats(self, library: str) -> Json:
        """Return the counts of one library."""
        return self._get("/api/v1/collection/stats", {"library": library})

    def diagnostics(self) -> Json:
        """Return everything somebody who helps a user asks for."""
        return self._get("/api/v1/diagnostics")

    # --- documents --------------------------------------------------------------------------------------------------------------

    def ingest(self, files: Sequence[FileToSend], library: str, wait: Wait = "true") -> Json:
        """Send files and return their outcomes in order (an IngestResponse).

        Raises:
            InputError: Every file failed; the class is that of the first failure.
        """
        fields = [("library", library)]
        if any(file.source_key is not None for file in files):
            fields += [("source_key", file.source_key or file.path.name) for file in files]
        boundary = secrets.token_hex(16)
        headers = {"Content-Type": f"multipart/form-data; boundary={boundary}"}
        body = _multipart(fields, [file.path for file in files], boundary)
        return self._read(self._send("POST", "/api/v1/ingest", params={"wait": wait}, data=body, headers=headers))

    def documents(self, library: str, query: str = "", limit: int = 500) -> Iterator[Json]:
        """Yield every document of a library whose title or file name contains `query`, page by page."""
        cursor: object = None
        while True:
            page = self._get("/api/v1/papers", {"library": library, "q": query, "limit": limit, "cursor": cursor})
            yield from cast("Sequence[Json]", page["documents"])
            cursor = page["next_cursor"]
            if cursor is None:
                return

    def document(self, library: str, name: str) -> Json:
        """Return one document by doc_id, source key or file name."""
        return self._get(f"/api/v1/papers/{_part(name)}", {"library": library})

    def text(self, library: str, doc_id: str, start: int = 0, end: int | None = None, revision: int | None = None) -> Json:
        """Return exactly those characters of a revision."""
        span = {"library": library, "start": start, "end": end, "revision": revision}
        return self._get(f"/api/v1/documents/{_part(doc_id)}/text", span)

    def delete(self, library: str, name: str, grace_s: float = 0) -> Json:
        """Remove a document by doc_id, source key or file name, and return what went."""
        return self._read(self._send("DELETE", f"/api/v1/papers/{_part(name)}", params={"library": library, "grace_s": grace_s}))

    def restore(self, library: str, doc_id: str) -> Json:
        """Undo a removal within its grace."""
        return self._post(f"/api/v1/papers/{_part(doc_id)}/restore", params={"library": library})

    def clear(self, library: str) -> Json:
        """Remove every document of a library, and return what went."""
        return self._read(self._send("DELETE", f"/api/v1/libraries/{_part(library)}/documents", params={"confirm": library}))

    def fetch_arxiv(self, arxiv_id: str, wait: Wait = "true") -> Json:
        """Fetch a paper from arXiv into `papers` and return its outcome."""
        return self._post("/api/v1/fetch-arxiv", {"arxiv_id": arxiv_id}, {"wait": wait})

    def samples(self, wait: Wait = "true") -> Json:
        """Index the bundled documents into both libraries."""
        return self._post("/api/v1/samples", params={"wait": wait})

    def bulk(self, action: str, library: str, **options: object) -> Json:
        """Start, join or resume a bulk job (`plan`, `index`, `embed`) and return it; options are the fields of BulkRequest."""
        return self._post("/api/v1/bulk", {"action": action, "library": library, **options})

    def bulk_ledger(self, library: str | None = None, source: str | None = None) -> Json:
        """Return what became of every article of the bulk sources."""
        return self._get("/api/v1/bulk/ledger", {"library": library, "source": source})

    # --- questions --------------------------------------------------------------------------------------------------------------

    def query(self, question: str, **options: object) -> Json:
        """Return the answer to a question; options are the fields of QueryRequest."""
        return self._post("/api/v1/query", {"question": question, **options})

    @contextmanager
    def query_stream(self, question: str, **options: object) -> Iterator[Iterator[ServerEvent]]:
        """Ask and yield the events as they come; leaving the block stops the model.

        Raises:
            DocuMindError: The server refused, or the stream ended with an `error` event.
        """
        with self._stream("POST", "/api/v1/query", {"question": question, "stream": True, **options}) as events:
            yield events

    @contextmanager
    def chat_stream(self, message: str, conversation_id: str | None = None, **options: object) -> Iterator[Iterator[ServerEvent]]:
        """Say something in a conversation and yield the events as they come; leaving the block stops the model."""
        body = {"message": message, "conversation_id": conversation_id, "stream": True, **options}
        with self._stream("POST", "/api/v1/chat", body) as events:
            yield events

    def search(self, query: str, library: str, **options: object) -> Json:
        """Return ranked passages; options are `limit`, `fusion` and the filters."""
        return self._get("/api/v1/search", {"q": query, "library": library, **options})

    def feedback(self) -> str:
        """Return what was said of stored answers as an answer set, JSON lines."""
        reply = self._send("GET", "/api/v1/feedback")
        if not reply.ok:
            raise error_of(reply)
        return reply.content.decode()

    def evaluation(self, report_id: str) -> Json:
        """Return a finished report of an evaluation."""
        return self._get(f"/api/v1/evaluations/{_part(report_id)}")

    def evaluation_file(self, report_id: str, kind: str) -> str:
        """Return a finished report as a file: `md`, `csv`, `html` or `json`."""
        reply = self._send("GET", f"/api/v1/evaluations/{_part(report_id)}/report.{_part(kind)}")
        if not reply.ok:
            raise error_of(reply)
        return reply.content.decode()

    def forget(self, what: Literal["answers", "conversations"]) -> Json:
        """Forget all stored answers or all conversations, and return how many."""
        return self._read(self._send("DELETE", f"/api/v1/{what}"))

    # --- jobs -------------------------------------------------------------------------------------------------------------------

    def jobs(self, limit: int = 100) -> Json:
        """Return jobs, newest first."""
        return self._get("/api/v1/jobs", {"limit": limit})

    def job(self, job_id: str) -> Json:
        """Return one job as it is now."""
        return self._get(f"/api/v1/jobs/{_part(job_id)}")

    def follow(self, job_id: str, changed: Callable[[Json], None] | None = None) -> Json:
        """Wait for a job's end, telling `changed` of every change, and return the job."""
        last: Json | None = None
        with self._stream("GET", f"/api/v1/jobs/{_part(job_id)}/events") as events:
            for event in events:
                last = event.data
                if changed is not None:
                    changed(last)
        return last if last is not None and last["state"] in FINISHED else self.job(job_id)

    def pause(self, job_id: str) -> Json:
        """Stop a job at its next step."""
        return self._post(f"/api/v1/jobs/{_part(job_id)}/pause")

    def resume(self, job_id: str) -> Json:
        """Go on with a paused job."""
        return self._post(f"/api/v1/jobs/{_part(job_id)}/resume")

    def cancel(self, job_id: str) -> Json:
        """End a job for good."""
        return self._read(self._send("DELETE", f"/api/v1/jobs/{_part(job_id)}"))

    # --- anything else ----------------------------------------------------------------------------------------------------------

    def get(self, path: str, params: Json | None = None) -> Json:
        """Return the JSON object at a path below the server's root."""
        return self._get(path, params)

    def post(self, path: str, body: Json | None = None, params: Json | None = None) -> Json:
        """Post a JSON body to a path below the server's root and return the reply."""
        return self._post(path, body, params)

    def _get(self, path: str, params: Json | None = None) -> Json:
        return self._read(self._send("GET", path, params=params))

    def _post(self, path: str, body: Json | None = None, params: Json | None = None) -> Json:
        return self._read(self._send("POST", path, params=params, json=body))

    def _send(self, method: str, path: str, **request: object) -> requests.Response:
        """Send a request; values of None are left out of the query.

        Raises:
            ProviderUnreachable: No connection.
            ProviderTimeout: The server went silent.
        """
        try:
            return self._session.request(method, f"{self._base}{path}", timeout=self._timeout, **request)  # type: ignore[arg-type]
        except requests.Timeout as exc:
            raise errors.ProviderTimeout(f"the server at {self._base} did not answer {method} {path} in time") from exc
        except requests.RequestException as exc:
            message = f"no server answers at {self._base} ({type(exc).__name__}); start it with: documind serve"
            raise errors.ProviderUnreachable(message) from exc

    @contextmanager
    def _stream(self, method: str, path: str, body: Json | None = None) -> Iterator[Iterator[ServerEvent]]:
        with self._send(method, path, json=body, stream=True, headers={"Accept": "text/event-stream"}) as reply:
            if not reply.ok:
                raise error_of(reply)
            yield _events(reply)

    def _read(self, reply: requests.Response, accept: tuple[int, ...] = ()) -> Json:
        """Return the JSON object of a reply, or raise the error it holds."""
        if not reply.ok and reply.status_code not in accept:
            raise error_of(reply)
        try:
            found = reply.json()
        except requests.JSONDecodeError as exc:
            raise errors.ProviderBadResponse(f"{reply.url} answered {reply.status_code} without JSON; is it DocuMind?") from exc
        return cast("Json", found) if isinstance(found, dict) else {"items": found}


def error_of(reply: requests.Response) -> errors.DocuMindError:
    """Return the error that a problem reply stands for."""
    try:
        problem = reply.json()
    except requests.JSONDecodeError:
        problem = None
    if not isinstance(problem, dict) or "code" not in problem:
        return errors.ProviderBadResponse(f"{reply.url} answered {reply.status_code} {reply.reason}; is it DocuMind?")
    retry_after = reply.headers.get("Retry-After", "")
    return error_from(problem, float(retry_after) if retry_after.isdigit() else None)


def error_from(problem: Json, retry_after_s: float | None = None) -> errors.DocuMindError:
    """Return the error of a problem body: the most specific class with its code, or the root for one we do not know."""
    classes = [cls for cls in errors.error_classes().values() if cls.code == problem["code"]]
    cls = max(classes, key=lambda found: len(found.__mro__), default=errors.DocuMindError)
    return cls(str(problem.get("detail", "")), retry_after_s=retry_after_s)


def _part(value: str) -> str:
    """Return a value as one part of a path."""
    return quote(value, safe="")


def _events(reply: requests.Response) -> Iterator[ServerEvent]:
    """Yield server-sent events until the stream ends.

    Raises:
        DocuMindError: An `error` event came, or the connection broke.
    """
    name, data = "message", ""
    for line in _lines(reply):
        if line.startswith("event:"):
            name = line[6:].strip()
        elif line.startswith("data:"):
            data += line[5:].strip()
        elif not line and data:
            event = ServerEvent(name, cast("Json", json.loads(data)))
            name, data = "message", ""
            if event.name == "error":
                raise error_from(event.data)
            yield event


def _lines(reply: requests.Response) -> Iterator[str]:
    """Yield lines as soon as they are complete; events end lines with a line feed alone.

    Raises:
        ProviderUnreachable: The connection broke.
    """
    rest = b""
    try:
        for piece in reply.iter_content(chunk_size=None):
            *whole, rest = (rest + piece).split(b"\n")
            for line in whole:
                yield line.decode()
    except requests.RequestException as exc:
        raise errors.ProviderUnreachable(f"the stream from {reply.url} broke off ({type(exc).__name__})") from exc


def _multipart(fields: Sequence[tuple[str, str]], files: Sequence[Path], boundary: str) -> Iterator[bytes]:
    """Yield a form body piece by piece, so that no file is in memory as a whole."""
    for name, value in fields:
        yield f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode("utf-8", "replace")
    for path in files:
        # As browsers do it (WHATWG, multipart/form-data encoding): quotes and line ends percent-encoded.
        shown = path.name.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
        yield f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{shown}"\r\n\r\n'.encode("utf-8", "replace")
        with path.open("rb") as source:
            while piece := source.read(_PIECE_BYTES):
                yield piece
        yield b"\r\n"
    yield f"--{boundary}--\r\n".encode()
