"""Receive a form with files: the body goes to disk as it arrives, without holding a thread."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from anyio import to_thread
from fastapi import Request

from app.api.uploads import UploadReceiver
from app.settings import Settings

FEED_BYTES = 1024 * 1024


@asynccontextmanager
async def received(
    request: Request, settings: Settings, fields: frozenset[str] = frozenset()
) -> AsyncIterator[tuple[UploadReceiver, bytes]]:
    """Yield what received a body, and its last bytes, which are still to be fed.

    What was written is removed at the end.

    Args:
        request: A multipart form.
        settings: Say where files go and how large they may be.
        fields: Text fields that the form may have.

    Raises:
        InvalidInput: No such form, or a field that is not allowed.
        TooLarge: A file over MAX_FILE_SIZE_MB.
        DiskFull: No space for a file.
    """

    def opened() -> UploadReceiver:
        return UploadReceiver(
            request.headers.get("content-type", ""),
            settings.data_dir / "uploads",
            max_file_bytes=settings.max_file_size_mb * 2**20,
            allowed_fields=fields,
        )

    receiver = await to_thread.run_sync(opened)
    try:
        pending = bytearray()
        async for piece in request.stream():
            pending += piece
            if len(pending) >= FEED_BYTES:
                await to_thread.run_sync(receiver.feed, bytes(pending))
                pending.clear()
        yield receiver, bytes(pending)
    finally:
        await to_thread.run_sync(receiver.discard)
