"""Requests to an Ollama server, each with what the reply must be: one list for the double and for a real server."""

from tests.contract.ollama_pairs.chat import CHAT
from tests.contract.ollama_pairs.http import HTTP, NAMES
from tests.contract.ollama_pairs.pair import Pair, ask, holds_at, wrong
from tests.contract.ollama_pairs.vectors import VECTORS

PAIRS = [*HTTP, *NAMES, *CHAT, *VECTORS]

__all__ = ["PAIRS", "Pair", "ask", "holds_at", "wrong"]
