"""The double's endpoints, as ollama.md describes them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime

from tests.fakes.ollama_double.models import DEFAULT_MODELS, DoubleModel, Fault, Script, count_tokens
from tests.fakes.ollama_double.wire import Fields, Gone, Wire


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f") + "123Z"  # nine digits, as Go writes them


class Handler(Wire):
    def do_GET(self) -> None:  # noqa: N802 - of the base class
        self._record({})
        if self._faulty():
            return
        answers: dict[str, Fields] = {
            "/api/version": {"version": self.server.version},
            "/api/tags": {"models": [self._row(model) for model in self.server.models]},
            "/api/ps": {"models": [self._loaded(model) for model in self.server.models if model.name in self.server.loaded]},
            "/v1/models": {
                "object": "list",
                "data": [{"id": model.name, "object": "model"} for model in self.server.models] or None,
            },
        }
        if self.path == "/":
            self._send(200, b"Ollama is running", "text/plain; charset=utf-8")
        elif self.path in answers:
            self._json(200, answers[self.path])
        else:
            self._send(404, b"404 page not found", "text/plain")

    def do_POST(self) -> None:  # noqa: N802 - of the base class
        try:
            content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if not content:
                return self._error(400, "missing request body")
            body: Fields = json.loads(content)
        except ValueError:
            return self._error(400, "invalid character 'x' looking for beginning of value")
        self._record(body)
        routes = {"/api/show": self._show, "/api/pull": self._pull, "/api/chat": self._chat, "/api/embed": self._embed}
        route = routes.get(self.path)
        if route is None:
            return self._send(404, b"404 page not found", "text/plain")
        try:
            route(body)
        except (Gone, BrokenPipeError, ConnectionResetError):
            self.server.note_abort()
            self.close_connection = True
        return None

    # --- endpoints ----------------------------------------------------------------------------------------------------------------

    def _show(self, body: Fields) -> None:
        if self._faulty():
            return
        model = self.server.find(str(body.get("model", "")))
        if model is None:
            self._error(404, f"model '{body.get('model')}' not found")
            return
        info: Fields = {
            "general.architecture": model.family,
            f"{model.family}.context_length": model.context_length,
            f"{model.family}.embedding_length": model.dimension or 2048,
            "tokenizer.ggml.tokens": None,
        }
        shown: Fields = {"details": {"family": model.family}, "model_info": info, "modified_at": now()}
        if model.num_ctx is not None:
            shown["parameters"] = f'num_ctx                        {model.num_ctx}\nstop    "<|end|>"'
        if model.tells_capabilities:
            shown["capabilities"] = model.capabilities
        self._json(200, shown)

    def _pull(self, body: Fields) -> None:
        name, fault = str(body["model"]), self._fault_before_body()
        if fault is not None and fault.kind == "status":
            return
        lines: list[Fields] = [{"status": "pulling manifest"}]
        if name.startswith("unknown"):
            lines.append({"error": "pull model manifest: file does not exist"})
        else:
            blob = {"status": "pulling 0123456789ab", "digest": "sha256:0123456789ab", "total": 4000}
            lines += [{**blob}, *({**blob, "completed": done} for done in (1000, 2500, 4000))]
            lines += [{"status": "verifying sha256 digest"}, {"status": "writing manifest"}, {"status": "success"}]
            if self.server.find(name) is None:
                full = name if ":" in name else f"{name}:latest"
                known = {model.name: model for model in DEFAULT_MODELS}
                self.server.models.append(known.get(full, DoubleModel(full)))
        self._stream(iter(lines), fault)

    def _embed(self, body: Fields) -> None:
        fault = self._fault_before_body()
        if fault is not None and fault.kind in {"status", "redirect"}:
            return
        name = str(body.get("model", ""))
        model = self.server.find(name)
        if model is None:
            self._error(404, f'model "{name}" not found, try pulling it first')
            return
        if model.dimension is None:
            self._error(501, "This server does not support embeddings. Start it with `--embeddings`")
            return
        value = body.get("input")
        texts = [value] if isinstance(value, str) else value
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            self._error(400, "invalid input type")
            return
        options = body.get("options") or {}
        assert isinstance(options, dict)
        limit = min(int(options.get("num_ctx", model.context_length)), model.context_length) - 2
        self.server.load(model, (options.get("num_ctx"),))
        counts = [count_tokens(text) for text in texts]
        if any(count > limit for count in counts):
            if body.get("truncate") is False:
                self._error(400, "the input length exceeds the context length")
                return
            with self.server.lock:
                self.server.truncations += 1
        self._sleep(self.server.embed_ms / 1000 * len(texts))
        rows = [model.vector(" ".join(text.split()[:limit])).tolist() for text in texts]
        if fault is not None:
            rows = self._spoil(rows, fault)
        reply = {"model": name, "embeddings": rows, "total_duration": 1_000_000, "prompt_eval_count": sum(counts)}
        if fault is not None and fault.kind in {"reset", "close"}:
            self._cut(json.dumps(reply).encode(), fault)
            return
        self._json(200, reply)

    def _chat(self, body: Fields) -> None:
        self.server.enter(self)
        try:
            fault = self._fault_before_body()
            if fault is None or fault.kind not in {"status", "redirect"}:
                self._answer(body, fault)
        finally:
            self.server.leave(self)

    def _answer(self, body: Fields, fault: Fault | None) -> None:
        name = str(body.get("model", ""))
        model = self.server.find(name)
        if not name or model is None:
            self._error(404 if name else 400, f"model '{name}' not found" if name else "model is required")
            return
        if model.dimension is not None:
            self._error(400, f'"{name}" does not support chat')
            return
        messages, options = body.get("messages") or [], body.get("options") or {}
        assert isinstance(messages, list)
        assert isinstance(options, dict)
        window = min(int(options.get("num_ctx", 4096)), model.context_length)
        self.server.load(model, (options.get("num_ctx"), body.get("shift")))
        planned = sum(count_tokens(message["content"]) + 4 for message in messages)
        if planned > window:
            if body.get("truncate") is False:
                inner = {
                    "code": 400,
                    "message": f"request ({planned} tokens) exceeds the available context size ({window} tokens), try"
                    " increasing it",
                }
                self._error(400, json.dumps({"error": {**inner, "type": "exceed_context_size_error"}}))
                return
            with self.server.lock:
                self.server.truncations += 1
            planned = window
        prompt = "\n".join(message["content"] for message in messages)
        script = self.server.next_script(prompt, model)
        lines = self._lines(name, script, model, planned, body, int(options.get("num_predict", -1)))
        if body.get("stream") is False:
            self._json(200, self._whole(list(lines)))
        else:
            self._stream(lines, fault)

    def _lines(self, name: str, script: Script, model: DoubleModel, planned: int, body: Fields, most: int) -> Iterator[Fields]:
        def line(**message: str) -> Fields:
            return {"model": name, "created_at": now(), "message": {"role": "assistant", "content": "", **message}, "done": False}

        if model.thinks and body.get("think") is not False:
            yield line(thinking=script.thinking or "Let me think.")
        tokens = script.tokens if most < 0 else script.tokens[:most]
        for position, token in enumerate(tokens):
            part = line(content=token)
            if body.get("logprobs") and self._knows_logprobs():
                value = script.logprobs[position] if position < len(script.logprobs) else -0.1
                part["logprobs"] = [{"token": token, "logprob": value, "bytes": list(token.encode())}]
            yield part
        reason = "length" if len(tokens) < len(script.tokens) else script.done_reason
        counts = {"prompt_eval_count": planned, "eval_count": len(tokens)}
        metrics = {
            "total_duration": 5_000_000,
            "load_duration": 1_000_000,
            "prompt_eval_duration": 2_000_000,
            "eval_duration": 1_500_000,
            **{key: value for key, value in counts.items() if value},
        }
        self.server.leave(self)  # before the client can know and ask again
        yield {**line(), "done": True, "done_reason": reason, **metrics}

    def _knows_logprobs(self) -> bool:
        return tuple(int(part) for part in self.server.version.split(".")[:3]) >= (0, 12, 11)

    @staticmethod
    def _whole(lines: list[Fields]) -> Fields:
        content = "".join(str(line["message"]["content"]) for line in lines)  # type: ignore[index]  # our own lines
        return {**lines[-1], "message": {"role": "assistant", "content": content}}

    # --- lists --------------------------------------------------------------------------------------------------------------------

    def _row(self, model: DoubleModel) -> Fields:
        row: Fields = {"name": model.name, "model": model.name, "modified_at": now(), "size": 1_000_000, "digest": model.digest}
        row["details"] = {"family": model.family, "parameter_size": "3.2B", "quantization_level": "Q4_K_M"}
        if model.tells_capabilities:
            row["capabilities"] = model.capabilities
        return row

    def _loaded(self, model: DoubleModel) -> Fields:
        asked = self.server.loaded[model.name][0]
        window = min(asked if isinstance(asked, int) else 4096, model.context_length)
        return {**self._row(model), "expires_at": now(), "size_vram": 0, "context_length": window}
