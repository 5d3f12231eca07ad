"""A model host that writes at a fixed rate and stamps every tenth token with the time it leaves.

    python -m evaluation.bench_load.model_host --tokens-per-s 20

Prints its address on the first line. `time.monotonic_ns` is one clock for all processes of a Linux machine, so that a reader can
tell how long a token was under way.
"""

from __future__ import annotations

import argparse
import sys

from tests.fakes.ollama_double import OllamaDouble, Script
from tests.fakes.ollama_double.models import DoubleModel

WORDS = "Copper is a soft red metal that melts at 1085 degrees Celsius and conducts well [1].".split()
TOKENS = 200
"""Of each answer: ten seconds at 20 a second."""
STAMP_EVERY = 10
"""A stamp in every token would make the answer's sentences ten times as long for the model that checks them."""


class SteadyHost(OllamaDouble):
    """Says the same every time, whatever it is asked."""

    def next_script(self, prompt: str, model: DoubleModel) -> Script:
        """Return words, every tenth with a stamp."""
        del prompt, model
        return Script(tuple(f" {WORDS[at % len(WORDS)]}{'' if at % STAMP_EVERY else ' t@now@'}" for at in range(TOKENS)))


def main() -> None:
    """Serve until standard input is closed."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--tokens-per-s", type=float, default=20.0)
    with SteadyHost(tokens_per_s=parser.parse_args().tokens_per_s) as host:
        host.stamps = True
        print(host.url, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
