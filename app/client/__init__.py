"""Typed client of our own HTTP API, for the CLI, scripts and benchmarks.

Replies are JSON objects as API.md describes them. Errors of the server come back as the classes of `app.core.errors`, found by
their code; a server that cannot be reached is ProviderUnreachable.
"""

from app.client.client import FINISHED, DocuMindClient, Wait
from app.client.connection import Json, ServerEvent, error_from
from app.client.uploads import FileToSend

__all__ = ["FINISHED", "DocuMindClient", "FileToSend", "Json", "ServerEvent", "Wait", "error_from"]
