"""Run the double by hand, under a load test, or with a real model behind it.

    python -m tests.fakes.ollama_double --port 11434 --tokens-per-s 20
    .venv-live/bin/python -m tests.fakes.ollama_double --port 11434 --model FILE.gguf --name
    qwen2.5:0.5b

Prints its address and models on the first line. With a model, every answer is the model's own.
"""

from __future__ import annotations

import argparse
import signal
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tests.fakes.ollama_double import OllamaDouble
from tests.fakes.ollama_double.engine import Engine
from tests.fakes.ollama_double.models import DEFAULT_MODELS, DoubleModel, full_name


def main() -> None:
    asked = _arguments()
    models, engines = _models(asked)
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    with OllamaDouble(
        models,
        port=asked.port,
        version=asked.release,
        tokens_per_s=asked.tokens_per_s,
        read_tokens_per_s=asked.read_tokens_per_s,
        embed_ms=asked.embed_ms,
        engines=engines,
    ) as double:
        print(
            f"Ollama double on {double.url} with"
            f" {', '.join(model.name for model in double.models)}; Ctrl-C ends it",
            flush=True,
        )
        ended.wait()
        print(f"{len(double.requests)} requests, {double.aborted} aborted")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--port", type=int, default=0, help="0: a free one")
    parser.add_argument("--release", default="0.33.0", help="version to be")
    parser.add_argument(
        "--model", type=Path, help="a GGUF file that answers; needs llama-cpp-python"
    )
    parser.add_argument("--name", default="", help="name of that model; without, the file's")
    parser.add_argument("--threads", type=int, help="of that model; without, half of the cores")
    parser.add_argument(
        "--tokens-per-s",
        type=float,
        default=0.0,
        help="write no faster than this; 0: as fast as it goes",
    )
    parser.add_argument(
        "--read-tokens-per-s", type=float, default=0.0, help="read prompts no faster than this"
    )
    parser.add_argument("--embed-ms", type=float, default=0.0, help="per text")
    parser.add_argument("--load-s", type=float, default=0.0, help="load the model so much longer")
    parser.add_argument("--empty", action="store_true", help="start without models")
    return parser.parse_args()


def _models(asked: argparse.Namespace) -> tuple[Sequence[DoubleModel], Mapping[str, Engine]]:
    if asked.empty:
        return (), {}
    if asked.model is None:
        return DEFAULT_MODELS, {}
    from tests.fakes.ollama_double.llama_engine import LlamaEngine  # noqa: PLC0415  # only where it is installed

    engine = LlamaEngine(asked.model, threads=asked.threads, load_s=asked.load_s)
    chat = engine.model(full_name(asked.name or asked.model.stem.lower()))
    vectors = replace(
        chat,
        name=full_name(f"{chat.name.partition(':')[0]}-vectors"),
        dimension=engine.dimension,
        weights="",
    )
    return (chat, vectors), {chat.name: engine, vectors.name: engine}


if __name__ == "__main__":
    main()
