"""Serve a model at a fixed rate, and log when each token left.

    python -m evaluation.benchmarks.load.model_host --tokens-per-s 20 LOG_FILE

Prints its address on the first line; when standard input is closed it writes the log and ends.
`time.monotonic_ns` is one clock for all processes of a Linux machine, so that the log and a
reader's own times tell how long a token was under way. The log is not in the text: a number in an
answer would be a claim that no passage holds.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import threading
import time
from itertools import accumulate
from pathlib import Path

from evaluation.benchmarks.load.facts import answer_to
from tests.fakes.ollama_double import OllamaDouble, Script
from tests.fakes.ollama_double.models import DoubleModel

Sent = dict[str, list[tuple[int, int]]]
"""Per answer, by its text: how many characters had been written, and when (ns)."""


class SteadyHost(OllamaDouble):
    """Answers from the passages it is shown, a different text each time."""

    def __init__(self, tokens_per_s: float) -> None:
        """Listen on a free port."""
        super().__init__(tokens_per_s=tokens_per_s)
        self._draw = random.Random(8)
        self._answers: list[tuple[Script, list[int]]] = []
        self._current = threading.local()

    def next_script(self, prompt: str, model: DoubleModel) -> Script:
        """Return reworded sentences of the passages, with their marks."""
        del model
        with self.lock:
            script = Script.of(answer_to(prompt, self._draw))
            self._current.times = []
            self._answers.append((script, self._current.times))
        return script

    def note_line(self) -> None:
        """Keep the time of a line that leaves now; each request has its own thread."""
        self._current.times.append(time.monotonic_ns())

    def log(self) -> Sent:
        return {
            "".join(script.tokens): list(
                zip(accumulate(map(len, script.tokens)), times, strict=False)
            )
            for script, times in self._answers
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("log", type=Path)
    parser.add_argument("--tokens-per-s", type=float, default=20.0)
    asked = parser.parse_args()
    host = SteadyHost(asked.tokens_per_s)
    with host:
        print(host.url, flush=True)
        sys.stdin.read()
    asked.log.write_text(json.dumps(host.log()), "utf-8")


if __name__ == "__main__":
    main()
