"""`/v1/systemone` of Ollama 0.35 and later: typed questions in, probabilities out.

Built from published descriptions of the protocol; no Ollama of that release was at hand.
"""

from __future__ import annotations

from tests.fakes.ollama_double.protocol import Refused
from tests.fakes.ollama_double.wire import Fields, Wire


class DecisionEndpoints(Wire):
    """Answers of a decision model to yes-or-no questions."""

    def systemone(self, body: Fields) -> None:
        if not self.server.since(0, 35, 0):
            self._send(404, b"404 page not found", "text/plain")
            return
        if self._faulty():
            return
        name = str(body.get("model") or "")
        model = self.server.find(name)
        if model is None:
            raise Refused(404, f"model '{name}' not found")
        if not model.decides:
            raise Refused(400, f'"{name}" does not support decision')
        state, questions = body.get("state"), body.get("questions")
        if not state or not isinstance(questions, dict) or not questions:
            raise Refused(400, "state and questions are required")
        answers = {}
        for key, question in questions.items():
            if question.get("type") != "noul" or not question.get("instructions"):
                raise Refused(400, f"question {key!r} is not understood")
            if model.yes is not None:
                answers[key] = {"type": "noul", "noul": model.yes}
        usage = {"input_tokens": len(str(state).split()), "output_tokens": 0}
        self._json(200, {"model": name, "answers": answers, "usage": usage})
