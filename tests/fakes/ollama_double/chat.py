"""`/api/chat` and `/api/generate`."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

from tests.fakes.ollama_double.engine import Ask
from tests.fakes.ollama_double.models import DoubleModel, Fault, full_name
from tests.fakes.ollama_double.protocol import (
    Refused,
    check_format,
    check_options,
    check_think,
    check_top,
    check_types,
    keep_alive,
    name_in,
)
from tests.fakes.ollama_double.speech import Spoken, entries_of, limited
from tests.fakes.ollama_double.wire import Fields, Wire, now

_READS_PER_S, _WRITES_PER_S = 10_000, 5_000
"""What a scripted model says of its speed, tokens a second."""


class ChatEndpoints(Wire):
    """Answers by messages and by a plain prompt."""

    def chat(self, body: Fields) -> None:
        self._speak(body, "ChatRequest")

    def generate(self, body: Fields) -> None:
        self._speak(body, "GenerateRequest")

    def _speak(self, body: Fields, request: str) -> None:
        self.server.enter(self)
        try:
            fault = self._fault_before_body()
            if fault is None or fault.kind not in {"status", "redirect"}:
                self._answer(body, request, fault)
        finally:
            self.server.leave(self)

    def _answer(self, body: Fields, request: str, fault: Fault | None) -> None:
        chat = request == "ChatRequest"
        check_types(body, request)
        empty = Refused(400, "model is required") if chat else Refused(404, "model '' not found")
        name = name_in(body, empty=empty, fields=("model",))
        model = self.server.find(name)
        if model is None:
            raise Refused(404, f"model '{name}' not found")
        think, top = check_think(body.get("think")), check_top(body.get("top_logprobs"))
        options: dict[str, Any] = dict(body.get("options") or {})  # type: ignore[call-overload]  # checked above
        check_options(options)
        stay = keep_alive(body.get("keep_alive"))
        self._refuse_kind(model, name, "chat" if chat else "generate", body, think)
        ask = _ask(body, options, top, chat)
        if not ask.messages and not ask.raw:
            self._json(200, self._loaded_only(body, model, name, chat))
            return
        check_format(body.get("format"), llama_server=self.server.since(0, 30, 0))
        window = self.server.load(model, name, options.get("num_ctx"), body.get("shift"), stay)
        lines = self._lines(body, model, ask, window, chat)
        if body.get("stream") is False:
            self._json(200, _whole(list(lines), chat))
        else:
            self._stream(lines, fault)
        if stay is not None and not stay:
            self.server.unload(model)

    def _refuse_kind(
        self, model: DoubleModel, name: str, use: str, body: Fields, think: bool
    ) -> None:
        if model.dimension is not None:
            raise Refused(400, f'"{name}" does not support {use}')
        if body.get("tools") and "tools" not in model.capabilities:
            raise Refused(
                400, f"registry.ollama.ai/library/{full_name(name)} does not support tools"
            )
        if think and not model.thinks:
            raise Refused(400, f'"{name}" does not support thinking')

    def _loaded_only(self, body: Fields, model: DoubleModel, name: str, chat: bool) -> Fields:
        stay = keep_alive(body.get("keep_alive"))
        done: Fields = {"model": body["model"], "created_at": now(), "done": True}
        done |= {"message": {"role": "assistant", "content": ""}} if chat else {"response": ""}
        if stay is not None and not stay:
            self.server.unload(model)
            return {**done, "done_reason": "unload"}
        options = body.get("options") or {}
        assert isinstance(options, dict)
        self.server.load(model, name, options.get("num_ctx"), body.get("shift"), stay)
        return {**done, "done_reason": "load"}

    def _lines(
        self, body: Fields, model: DoubleModel, ask: Ask, window: int, chat: bool
    ) -> Iterator[Fields]:
        """The lines of an answer; what is wrong with the request shows before the first."""
        engine, began = self.server.engine(model), time.monotonic()

        def line(text: str = "", **more: str) -> Fields:
            said: Fields = (
                {"message": {"role": "assistant", "content": text, **more}}
                if chat
                else {"response": text, **more}
            )
            return {"model": body["model"], "created_at": now(), **said, "done": False}

        with self.server.turn(model):
            loaded = time.monotonic()
            engine.load(window)
            planned = engine.count(ask)
            if planned > window:
                if body.get("truncate") is False:
                    raise Refused(400, self._too_long(planned, window), of_runner=True)
                with self.server.lock:
                    self.server.truncations += 1
                planned = window
            asked = time.monotonic()
            engine.read(ask, planned, self._raise_if_gone)
            if self.server.read_tokens_per_s:
                self._sleep_until(asked + planned / self.server.read_tokens_per_s)
            read = time.monotonic()
            if model.thinks and body.get("think") is not False:
                yield line(thinking="Let me think.")
            spoken = Spoken()
            for piece in limited(engine.write(ask), ask.stops, ask.most, spoken):
                part = line(piece.text)
                if body.get("logprobs") and self.server.since(0, 12, 11):
                    part["logprobs"] = entries_of(piece, ask.top)
                yield part
            written = time.monotonic()
        self.server.leave(self)  # before the client can know and ask again
        measured = engine.measured or self.server.read_tokens_per_s > 0
        metrics = {
            "total_duration": written - began,
            "load_duration": asked - loaded if engine.measured else 0.001,
            "prompt_eval_count": planned,
            "prompt_eval_duration": read - asked if measured else planned / _READS_PER_S,
            "eval_count": spoken.tokens,
            "eval_duration": written - read if engine.measured else spoken.tokens / _WRITES_PER_S,
        }
        known = {
            key: value if isinstance(value, int) else int(value * 1e9)
            for key, value in metrics.items()
            if value
        }
        if self.server.since(0, 33, 3):
            known["prompt_eval_cached_count"] = 0
        last = {**line(), "done": True, "done_reason": spoken.reason, **known, **self.server.claims}
        yield (
            last
            if chat or body.get("raw")
            else {**last, "context": list(range(planned + spoken.tokens))}
        )

    def _too_long(self, planned: int, window: int) -> str:
        if not self.server.since(0, 30, 0):
            return "the input length exceeds the context length"
        said = (
            f"request ({planned} tokens) exceeds the available context size ({window} tokens),"
            " try increasing it"
        )
        inner = {
            "code": 400,
            "message": said,
            "type": "exceed_context_size_error",
            "n_prompt_tokens": planned,
            "n_ctx": window,
        }
        return json.dumps({"error": inner})


def _ask(body: Fields, options: dict[str, Any], top: int, chat: bool) -> Ask:
    if chat:
        rows = body.get("messages") or []
        assert isinstance(rows, list)
        messages = [
            {
                "role": str(row.get("role") or "user").lower(),
                "content": str(row.get("content") or ""),
            }
            for row in rows
        ]
        return Ask(messages, None, options, body.get("format") or None, top)
    prompt, system = str(body.get("prompt") or ""), str(body.get("system") or "")
    if body.get("raw"):
        if system or body.get("template") or body.get("context"):
            raise Refused(400, "raw mode does not support template, system, or context")
        return Ask((), prompt, options, body.get("format") or None, top)
    turns = [{"role": "system", "content": system}] if system and prompt else []
    turns += [{"role": "user", "content": prompt}] if prompt else []
    return Ask(turns, None, options, body.get("format") or None, top)


def _whole(lines: list[Fields], chat: bool) -> Fields:
    def joined(name: str) -> str:
        return "".join(str((line["message"] if chat else line).get(name, "")) for line in lines)  # type: ignore[attr-defined]

    text = "content" if chat else "response"
    said: Fields = {text: joined(text)}
    if thought := joined("thinking"):
        said["thinking"] = thought
    whole = {**lines[-1], **({"message": {"role": "assistant", **said}} if chat else said)}
    entries = [entry for line in lines for entry in line.get("logprobs", [])]  # type: ignore[attr-defined]  # our own lines
    return {**whole, "logprobs": entries} if entries else whole
