"""A real HTTP server in a thread that speaks Ollama's protocol, faults included.

    with OllamaDouble() as double:
        double.say("Paris is the capital. [1]")
        double.fail("/api/chat", Fault("error_line", after=2))
        ... OllamaHost(double.url) ...

By hand: `python -m tests.fakes.ollama_double --port 11434 --tokens-per-s 20`.
"""

from tests.fakes.ollama_double.models import DoubleModel, Fault, Recorded, Script
from tests.fakes.ollama_double.server import OllamaDouble

__all__ = ["DoubleModel", "Fault", "OllamaDouble", "Recorded", "Script"]
