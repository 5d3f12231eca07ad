"""Keep the OpenAI-compatible host that was chosen on the page: its address, key and model.

They are in a file of the data directory that only its owner reads, not in the catalog: so the key
is in no backup and no bundle.
"""

from __future__ import annotations

import json
import logging
import os
from dataclasses import asdict
from pathlib import Path

from app.models.options import HostedOptions
from app.storage.files.durable import disk_errors

logger = logging.getLogger(__name__)


class ChosenHost:
    """The file, read once and held in memory."""

    def __init__(self, path: Path | None) -> None:
        """Read the file; without a path nothing is kept."""
        self._path = path
        self.options = self._read()
        """None: none was chosen."""

    def _read(self) -> HostedOptions | None:
        try:
            return HostedOptions(**json.loads(self._path.read_bytes())) if self._path else None
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError) as error:
            reason = type(error).__name__  # a message could quote the key
            logger.warning("%s cannot be read (%s); choose the host again", self._path, reason)
            return None

    def keep(self, options: HostedOptions | None) -> None:
        """Take a host from now on, over restarts; None: none.

        Raises:
            DiskFull: No space.
        """
        if self._path is not None:
            with disk_errors(self._path):
                if options is None:
                    self._path.unlink(missing_ok=True)
                else:
                    self._write(self._path, json.dumps(asdict(options)))
        self.options = options

    @staticmethod
    def _write(path: Path, text: str) -> None:
        fresh = path.with_suffix(".new")
        fresh.unlink(missing_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        with os.fdopen(os.open(fresh, flags, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
