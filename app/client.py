"""Typed client of our own HTTP API, for the CLI, scripts and benchmarks.

Replies are JSON objects as docs/http.md describes them. Errors of the server are raised as classes
of `app.core.errors`, found by code; an unreachable server raises ProviderUnreachable.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self
from urllib.parse import quote, urlsplit

import requests

from app.core import errors
from app.core.ids import is_loopback

Json = Mapping[str, Any]
"""A JSON object as it came."""


METADATA = (
    "library", "doc_id", "filename", "title", "section", "chunk_index", "page", "start", "end",
    "score",
)  # fmt: skip
"""Fields of a hit that retrievers of other programs pass on."""
NEAREST = "Nothing in your documents says it outright. These places come nearest:"
"""Stands above the places of a refusal, which are no answer."""


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """A server-sent event.

    `meta`, `sources`, `quote`, `reading`, `token`, `final` of an answer; `progress`, `report`,
    `final` of a check; `job` of a job.
    """

    name: str
    data: Json


class Connection:
    """Talks to one server over kept connections; not for several threads at once."""

    def __init__(
        self,
        base_url: str,
        api_key: str = "",
        *,
        timeout_s: float = 600.0,
        connect_timeout_s: float = 5.0,
    ) -> None:
        """Point at a server, with its path prefix when there is one; nothing is sent yet.

        `timeout_s` is the longest silence of the server; a stream has a heartbeat every 10 s.
        """
        self.base_url = base_url.rstrip("/")
        self.api_key = api_key
        self._timeout = (connect_timeout_s, timeout_s)
        self._session = requests.Session()
        # a proxy of the environment has no business with a server on this machine
        self._session.trust_env = False
        if is_loopback(urlsplit(self.base_url).hostname or ""):
            # packing costs both ends more than loopback does
            self._session.headers["Accept-Encoding"] = "identity"
        if api_key:
            self._session.headers["X-API-Key"] = api_key

    def close(self) -> None:
        self._session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def get(self, path: str, params: Json | None = None) -> Json:
        return self._read(self._send("GET", path, params=params))

    def post(self, path: str, body: Json | None = None, params: Json | None = None) -> Json:
        return self._read(self._send("POST", path, params=params, json=body))

    def put(self, path: str, body: Json) -> Json:
        return self._read(self._send("PUT", path, json=body))

    def patch(self, path: str, body: Json, params: Json | None = None) -> Json:
        return self._read(self._send("PATCH", path, params=params, json=body))

    def remove(self, path: str, params: Json | None = None) -> Json:
        return self._read(self._send("DELETE", path, params=params))

    def _text(self, path: str) -> str:
        reply = self._send("GET", path)
        if not reply.ok:
            raise error_of(reply)
        return reply.content.decode()

    def _send(self, method: str, path: str, **request: object) -> requests.Response:
        """Send a request; values of None are left out of the query.

        Raises:
            ProviderUnreachable: No connection.
            ProviderTimeout: The server went silent.
        """
        try:
            return self._session.request(
                method,
                f"{self.base_url}{path}",
                timeout=self._timeout,
                **request,  # type: ignore[arg-type]
            )
        except requests.Timeout as exc:
            raise errors.ProviderTimeout(
                f"the server at {self.base_url} did not answer {method} {path} in time"
            ) from exc
        except requests.RequestException as exc:
            message = (
                f"no server answers at {self.base_url} ({type(exc).__name__}); start it with:"
                " documind serve"
            )
            raise errors.ProviderUnreachable(message) from exc

    @contextmanager
    def _stream(
        self, method: str, path: str, body: Json | None = None
    ) -> Iterator[Iterator[ServerEvent]]:
        with self._send(
            method, path, json=body, stream=True, headers={"Accept": "text/event-stream"}
        ) as reply:
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
            raise errors.ProviderBadResponse(
                f"{reply.url} answered {reply.status_code} without JSON; is it DocuMind?"
            ) from exc
        return found if isinstance(found, dict) else {"items": found}


def error_of(reply: requests.Response) -> errors.DocuMindError:
    try:
        problem = reply.json()
    except requests.JSONDecodeError:
        problem = None
    if not isinstance(problem, dict) or "code" not in problem:
        return errors.ProviderBadResponse(
            f"{reply.url} answered {reply.status_code} {reply.reason}; is it DocuMind?"
        )
    retry_after = reply.headers.get("Retry-After", "")
    return error_from(problem, float(retry_after) if retry_after.isdigit() else None)


def error_from(problem: Json, retry_after_s: float | None = None) -> errors.DocuMindError:
    cls = errors.class_of(str(problem["code"]))
    return cls(str(problem.get("detail", "")), retry_after_s=retry_after_s)


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
            event = ServerEvent(name, json.loads(data))
            name, data = "message", ""
            if event.name == "error":
                raise error_from(event.data)
            yield event


def _lines(reply: requests.Response) -> Iterator[str]:
    """Yield lines as soon as they are complete; a line feed alone ends a line.

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
        raise errors.ProviderUnreachable(
            f"the stream from {reply.url} broke off ({type(exc).__name__})"
        ) from exc


_PIECE_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class FileToSend:
    """A file for ingest; `source_key` None takes the file's name."""

    path: Path
    source_key: str | None = None
    labels: str = ""
    """What it is given: a JSON object {tags, metadata, title, authors, year}, or empty."""


def multipart(
    fields: Sequence[tuple[str, str]], files: Sequence[Path], boundary: str
) -> Iterator[bytes]:
    """Yield a form body piece by piece, so that no file is in memory as a whole."""
    for name, value in fields:
        yield (
            f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
        ).encode("utf-8", "replace")
    for path in files:
        # As browsers do it (WHATWG, multipart/form-data encoding): quotes and line ends
        # percent-encoded.
        shown = path.name.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
        yield (
            f"--{boundary}\r\n"
            f'Content-Disposition: form-data; name="file"; filename="{shown}"\r\n\r\n'
        ).encode("utf-8", "replace")
        with path.open("rb") as source:
            while piece := source.read(_PIECE_BYTES):
                yield piece
        yield b"\r\n"
    yield f"--{boundary}--\r\n".encode()


Wait = Literal["true", "text", "false"]
FINISHED = frozenset({"done", "failed", "cancelled"})


class DocuMindClient(Connection):
    """Our own HTTP API, typed; replies are JSON objects (docs/http.md)."""

    def health(self) -> Json:
        return self.get("/health")

    def ready(self) -> Json:
        """Return whether the server answers requests, and what is missing if not."""
        return self._read(self._send("GET", "/health/ready"), accept=(200, 503))

    def libraries(self) -> Json:
        return self.get("/api/v1/libraries")

    def stats(self, library: str) -> Json:
        return self.get("/api/v1/collection/stats", {"library": library})

    def diagnostics(self) -> Json:
        return self.get("/api/v1/diagnostics")

    def ingest(
        self,
        files: Sequence[FileToSend],
        library: str,
        wait: Wait = "true",
        *,
        sync_folder: str = "",
    ) -> Json:
        """Send files and return their outcomes in order (an IngestResponse).

        `sync_folder` names the folder whose sync sends them; `remove_synced` may remove them then.

        Raises:
            InputError: Every file failed; the class is that of the first failure.
        """
        fields = [("library", library), *([("sync_folder", sync_folder)] if sync_folder else [])]
        if any(file.source_key is not None for file in files):
            fields += [("source_key", file.source_key or file.path.name) for file in files]
        if any(file.labels for file in files):
            fields += [("labels", file.labels) for file in files]
        boundary = secrets.token_hex(16)
        headers = {"Content-Type": f"multipart/form-data; boundary={boundary}"}
        body = multipart(fields, [file.path for file in files], boundary)
        return self._read(
            self._send("POST", "/api/v1/ingest", params={"wait": wait}, data=body, headers=headers)
        )

    def documents(
        self, library: str, query: str = "", limit: int = 500, tag: str = ""
    ) -> Iterator[Json]:
        cursor: object = None
        while True:
            asked = {"library": library, "q": query, "limit": limit, "cursor": cursor, "tag": tag}
            page = self.get("/api/v1/papers", asked)
            yield from page["documents"]
            cursor = page["next_cursor"]
            if cursor is None:
                return

    def document(self, library: str, name: str) -> Json:
        return self.get(f"/api/v1/papers/{_part(name)}", {"library": library})

    def text(
        self,
        library: str,
        doc_id: str,
        start: int = 0,
        end: int | None = None,
        revision: int | None = None,
    ) -> Json:
        span = {"library": library, "start": start, "end": end, "revision": revision}
        return self.get(f"/api/v1/documents/{_part(doc_id)}/text", span)

    def delete(self, library: str, name: str, grace_s: float = 0) -> Json:
        """Remove a document by doc_id, source key or file name, and return what went."""
        return self.remove(
            f"/api/v1/papers/{_part(name)}", {"library": library, "grace_s": grace_s}
        )

    def correct(self, library: str, name: str, **fields: object) -> Json:
        """Correct a document; fields are those of DocumentCorrection."""
        return self.patch(f"/api/v1/papers/{_part(name)}", fields, {"library": library})

    def duplicates(self, library: str) -> Json:
        return self.get("/api/v1/duplicates", {"library": library})

    def tags(self, library: str | None = None) -> Json:
        return self.get("/api/v1/tags", {"library": library})

    def replace_tag(self, tag: str, new: str | None, library: str | None = None) -> Json:
        """Rename a tag, None: remove it, in every document; return how many had it."""
        path, of = f"/api/v1/tags/{_part(tag)}", {"library": library}
        return self.remove(path, of) if new is None else self.patch(path, {"name": new}, of)

    def clear(self, library: str) -> Json:
        return self.remove(f"/api/v1/libraries/{_part(library)}/documents", {"confirm": library})

    def synced(self, library: str, folder: str) -> set[str]:
        """Return the source keys of documents that came from a folder."""
        found = self.get("/api/v1/sync/documents", {"library": library, "folder": folder})
        return set(found["source_keys"])

    def remove_synced(
        self, library: str, folder: str, source_keys: Sequence[str]
    ) -> tuple[str, ...]:
        """Remove documents that came from a folder; return the removed source keys."""
        body: Json = {"library": library, "folder": folder, "source_keys": list(source_keys)}
        return tuple(self.post("/api/v1/sync/remove", body)["source_keys"])

    def report_folder(
        self,
        library: str,
        folder: str,
        *,
        watching: bool,
        failed: Sequence[tuple[str, str]] | None = None,
    ) -> None:
        """Say that a folder was looked at now, and what of it failed; None: the same as before."""
        told = [{"file": name, "reason": why} for name, why in (failed or ())[:1000]]
        body: Json = {"library": library, "folder": folder, "watching": watching}
        self.put("/api/v1/sync/folders", {**body, "failed": None if failed is None else told})

    def fetch_arxiv(self, arxiv_id: str, wait: Wait = "true") -> Json:
        """Fetch a paper from arXiv into `papers` and return its outcome."""
        return self.post("/api/v1/fetch-arxiv", {"arxiv_id": arxiv_id}, {"wait": wait})

    def fetch_url(self, url: str, library: str, wait: Wait = "true") -> Json:
        """Fetch a page or file from the web and return its outcome."""
        return self.post("/api/v1/fetch-url", {"url": url, "library": library}, {"wait": wait})

    def samples(self, wait: Wait = "true") -> Json:
        return self.post("/api/v1/samples", params={"wait": wait})

    def remove_samples(self) -> Json:
        return self.remove("/api/v1/samples")

    def bulk(self, action: str, library: str, **options: object) -> Json:
        """Start, join or resume a bulk job; return it.

        `action` is `plan`, `index` or `embed`; options are the fields of BulkRequest.
        """
        return self.post("/api/v1/bulk", {"action": action, "library": library, **options})

    def bulk_ledger(self, library: str | None = None, source: str | None = None) -> Json:
        return self.get("/api/v1/bulk/ledger", {"library": library, "source": source})

    def check(
        self,
        text: str,
        library: str | None = None,
        against: str | None = None,
        judge: str | None = None,
        check_by: str | None = None,
        watch: Callable[[Json], None] = lambda _: None,
    ) -> Json:
        """Return the verdict of every sentence of a text (a CheckReport).

        `watch` is given {done, of, by} while the sentences are read.

        Raises:
            ProviderUnreachable: The server ended before the report.
        """
        given = {"library": library, "against": against, "judge": judge, "check_by": check_by}
        asked = {name: value for name, value in given.items() if value is not None}
        with self._stream(
            "POST", "/api/v1/check", {"text": text, "stream": True, **asked}
        ) as events:
            for event in events:
                if event.name == "final":
                    return event.data
                if event.name == "progress":
                    watch(event.data)
        raise errors.ProviderUnreachable("the server ended before the check did; try it again")

    def query(self, question: str, **options: object) -> Json:
        """Return the answer to a question; options are the fields of QueryRequest."""
        return self.post("/api/v1/query", {"question": question, **options})

    @contextmanager
    def query_stream(self, question: str, **options: object) -> Iterator[Iterator[ServerEvent]]:
        """Ask and yield the events as they come; leaving the block stops the model.

        Raises:
            DocuMindError: The server refused, or the stream ended with an `error` event.
        """
        with self._stream(
            "POST", "/api/v1/query", {"question": question, "stream": True, **options}
        ) as events:
            yield events

    @contextmanager
    def chat_stream(
        self, message: str, conversation_id: str | None = None, **options: object
    ) -> Iterator[Iterator[ServerEvent]]:
        """Send a message and yield the events as they come; leaving stops the model."""
        body = {"message": message, "conversation_id": conversation_id, "stream": True, **options}
        with self._stream("POST", "/api/v1/chat", body) as events:
            yield events

    def search(self, query: str, library: str | None = None, **options: object) -> Json:
        """Return ranked passages; options are `limit`, `fusion` and the filters."""
        return self.get("/api/v1/search", {"q": query, "library": library, **options})

    def feedback(self) -> str:
        return self._text("/api/v1/feedback")

    def evaluation(self, report_id: str) -> Json:
        return self.get(f"/api/v1/evaluations/{_part(report_id)}")

    def evaluation_file(self, report_id: str, kind: str) -> str:
        """Return a finished report as a file: `md`, `csv`, `html` or `json`."""
        return self._text(f"/api/v1/evaluations/{_part(report_id)}/report.{_part(kind)}")

    def forget(self, what: Literal["answers", "conversations"]) -> Json:
        """Forget all stored answers or all conversations, and return how many."""
        return self.remove(f"/api/v1/{what}")

    def jobs(self, limit: int = 100) -> Json:
        return self.get("/api/v1/jobs", {"limit": limit})

    def job(self, job_id: str) -> Json:
        return self.get(f"/api/v1/jobs/{_part(job_id)}")

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
        return self.post(f"/api/v1/jobs/{_part(job_id)}/pause")

    def cancel(self, job_id: str) -> Json:
        return self.remove(f"/api/v1/jobs/{_part(job_id)}")


def _part(value: str) -> str:
    return quote(value, safe="")
