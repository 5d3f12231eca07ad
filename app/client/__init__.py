"""Typed client of our own HTTP API, for the CLI, scripts and benchmarks.

Replies are JSON objects as docs/http.md describes them. Errors of the server are raised as classes
of `app.core.errors`, found by code; an unreachable server raises ProviderUnreachable.
"""

from app.client.client import FINISHED, DocuMindClient, Wait
from app.client.connection import Json, ServerEvent, error_from
from app.client.uploads import FileToSend

__all__ = ["FINISHED", "DocuMindClient", "FileToSend", "Json", "ServerEvent", "Wait", "error_from"]
