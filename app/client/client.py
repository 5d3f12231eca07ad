"""Call the HTTP API, one method an operation."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Literal, cast
from urllib.parse import quote

from app.client.connection import Connection, Json, ServerEvent
from app.client.uploads import FileToSend, multipart

Wait = Literal["true", "text", "false"]
FINISHED = frozenset({"done", "failed", "cancelled"})


class DocuMindClient(Connection):
    """Our own HTTP API, typed; replies are JSON objects (docs/http.md)."""

    # --- status
    # ----------------------------------------------------------------------

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
        """Return everything that support needs."""
        return self._get("/api/v1/diagnostics")

    # --- documents
    # ----------------------------------------------------------------------

    def ingest(
        self,
        files: Sequence[FileToSend],
        library: str,
        wait: Wait = "true",
        *,
        sync_folder: str = "",
    ) -> Json:
        """Send files and return their outcomes in order (an IngestResponse).

        Args:
            files: What to send.
            library: Where to.
            wait: For what.
            sync_folder: Names the folder whose sync sends them; `remove_synced` may remove them
                then.

        Raises:
            InputError: Every file failed; the class is that of the first failure.
        """
        fields = [("library", library), *([("sync_folder", sync_folder)] if sync_folder else [])]
        if any(file.source_key is not None for file in files):
            fields += [("source_key", file.source_key or file.path.name) for file in files]
        boundary = secrets.token_hex(16)
        headers = {"Content-Type": f"multipart/form-data; boundary={boundary}"}
        body = multipart(fields, [file.path for file in files], boundary)
        return self._read(
            self._send("POST", "/api/v1/ingest", params={"wait": wait}, data=body, headers=headers)
        )

    def documents(self, library: str, query: str = "", limit: int = 500) -> Iterator[Json]:
        """Yield every document whose title or file name contains `query`, by page."""
        cursor: object = None
        while True:
            page = self._get(
                "/api/v1/papers", {"library": library, "q": query, "limit": limit, "cursor": cursor}
            )
            yield from cast("Sequence[Json]", page["documents"])
            cursor = page["next_cursor"]
            if cursor is None:
                return

    def document(self, library: str, name: str) -> Json:
        """Return one document by doc_id, source key or file name."""
        return self._get(f"/api/v1/papers/{_part(name)}", {"library": library})

    def text(
        self,
        library: str,
        doc_id: str,
        start: int = 0,
        end: int | None = None,
        revision: int | None = None,
    ) -> Json:
        """Return exactly those characters of a revision."""
        span = {"library": library, "start": start, "end": end, "revision": revision}
        return self._get(f"/api/v1/documents/{_part(doc_id)}/text", span)

    def delete(self, library: str, name: str, grace_s: float = 0) -> Json:
        """Remove a document by doc_id, source key or file name, and return what went."""
        return self._read(
            self._send(
                "DELETE",
                f"/api/v1/papers/{_part(name)}",
                params={"library": library, "grace_s": grace_s},
            )
        )

    def restore(self, library: str, doc_id: str) -> Json:
        """Undo a removal within its grace."""
        return self._post(f"/api/v1/papers/{_part(doc_id)}/restore", params={"library": library})

    def clear(self, library: str) -> Json:
        """Remove every document of a library, and return what went."""
        return self._read(
            self._send(
                "DELETE",
                f"/api/v1/libraries/{_part(library)}/documents",
                params={"confirm": library},
            )
        )

    def synced(self, library: str, folder: str) -> set[str]:
        """Return the source keys of documents that came from a folder."""
        return set(
            cast(
                "Sequence[str]",
                self._get("/api/v1/sync/documents", {"library": library, "folder": folder})[
                    "source_keys"
                ],
            )
        )

    def remove_synced(
        self, library: str, folder: str, source_keys: Sequence[str]
    ) -> tuple[str, ...]:
        """Remove documents that came from a folder; return the removed source keys."""
        body: Json = {"library": library, "folder": folder, "source_keys": list(source_keys)}
        return tuple(cast("Sequence[str]", self._post("/api/v1/sync/remove", body)["source_keys"]))

    def fetch_arxiv(self, arxiv_id: str, wait: Wait = "true") -> Json:
        """Fetch a paper from arXiv into `papers` and return its outcome."""
        return self._post("/api/v1/fetch-arxiv", {"arxiv_id": arxiv_id}, {"wait": wait})

    def samples(self, wait: Wait = "true") -> Json:
        """Index the bundled documents into both libraries."""
        return self._post("/api/v1/samples", params={"wait": wait})

    def remove_samples(self) -> Json:
        """Remove the bundled documents only; return the number removed by library."""
        return self._read(self._send("DELETE", "/api/v1/samples"))

    def bulk(self, action: str, library: str, **options: object) -> Json:
        """Start, join or resume a bulk job; return it.

        `action` is `plan`, `index` or `embed`; options are the fields of BulkRequest.
        """
        return self._post("/api/v1/bulk", {"action": action, "library": library, **options})

    def bulk_ledger(self, library: str | None = None, source: str | None = None) -> Json:
        """Return what became of every article of the bulk sources."""
        return self._get("/api/v1/bulk/ledger", {"library": library, "source": source})

    # --- questions
    # ----------------------------------------------------------------------

    def check(
        self,
        text: str,
        library: str | None = None,
        against: str | None = None,
        judge: str | None = None,
    ) -> Json:
        """Return the verdict of every sentence of a text (a CheckResponse)."""
        given = {"library": library, "against": against, "judge": judge}
        return self._post(
            "/api/v1/check",
            {"text": text, **{name: value for name, value in given.items() if value is not None}},
        )

    def query(self, question: str, **options: object) -> Json:
        """Return the answer to a question; options are the fields of QueryRequest."""
        return self._post("/api/v1/query", {"question": question, **options})

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
        return self._get("/api/v1/search", {"q": query, "library": library, **options})

    def feedback(self) -> str:
        """Return what was said of stored answers as an answer set, JSON lines."""
        return self._text("/api/v1/feedback")

    def evaluation(self, report_id: str) -> Json:
        """Return a finished report of an evaluation."""
        return self._get(f"/api/v1/evaluations/{_part(report_id)}")

    def evaluation_file(self, report_id: str, kind: str) -> str:
        """Return a finished report as a file: `md`, `csv`, `html` or `json`."""
        return self._text(f"/api/v1/evaluations/{_part(report_id)}/report.{_part(kind)}")

    def forget(self, what: Literal["answers", "conversations"]) -> Json:
        """Forget all stored answers or all conversations, and return how many."""
        return self._read(self._send("DELETE", f"/api/v1/{what}"))

    # --- jobs
    # ----------------------------------------------------------------------

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

    # --- anything else
    # ----------------------------------------------------------------------


def _part(value: str) -> str:
    """Return a value as one part of a path."""
    return quote(value, safe="")
