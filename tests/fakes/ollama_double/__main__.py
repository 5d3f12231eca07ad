"""Run the double by hand, or under a load test."""

from __future__ import annotations

import argparse
import time

from tests.fakes.ollama_double import OllamaDouble
from tests.fakes.ollama_double.models import DEFAULT_MODELS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--tokens-per-s", type=float, default=30.0)
    parser.add_argument("--embed-ms", type=float, default=0.0, help="per text")
    parser.add_argument("--empty", action="store_true", help="start without models")
    arguments = parser.parse_args()
    models = () if arguments.empty else DEFAULT_MODELS
    with OllamaDouble(models, port=arguments.port, tokens_per_s=arguments.tokens_per_s, embed_ms=arguments.embed_ms) as double:
        print(f"Ollama double on {double.url} with {', '.join(model.name for model in double.models)}; Ctrl-C ends it", flush=True)
        try:
            while True:
                time.sleep(3600)
        except KeyboardInterrupt:
            print(f"{len(double.requests)} requests, {double.aborted} aborted")


if __name__ == "__main__":
    main()
