"""Recognise chat programs' own requests: titles, tags, follow-ups, queries.

Open WebUI sends them to the chat's own model, with prompts that begin with `### Task:` and show the
chat between `<chat_history>` tags. The library would be searched for them in vain, so they go to
the model as they are, or get a plain reply without one.

References:
    https://docs.openwebui.com/getting-started/env-configuration (TITLE_GENERATION_PROMPT_TEMPLATE
    and the like)
"""

from __future__ import annotations

import json
import re
from typing import Literal

ChatTask = Literal["title", "tags", "follow_ups", "queries"]
TITLE_CHARACTERS = 60
_OPENS = re.compile(r"\s*#{2,3}\s*Task\s*:", re.IGNORECASE)
_HISTORY = re.compile(r"<chat_history>(.*?)</chat_history>", re.DOTALL)
_ASKED = re.compile(r"^\s*(?:USER|user|User)\s*:\s*(.+)$", re.MULTILINE)
_WANTED: tuple[tuple[ChatTask, re.Pattern[str]], ...] = (
    ("title", re.compile(r'"title"\s*:')),
    ("tags", re.compile(r'"tags"\s*:')),
    ("follow_ups", re.compile(r'"follow_ups"\s*:')),
    ("queries", re.compile(r'"queries"\s*:')),
)


def task_of(message: str) -> ChatTask | None:
    """Return which task a message is; None for a question."""
    if not _OPENS.match(message) or not _HISTORY.search(message):
        return None
    outside = _HISTORY.sub("", message)
    return next((task for task, pattern in _WANTED if pattern.search(outside)), None)


def plain_reply(task: ChatTask, message: str, library: str) -> str:
    """Return the JSON that the task asks for, made without a model.

    A title is the first question's first 60 characters, the tag is the library, and there are no
    follow-ups or queries.
    """
    if task == "title":
        return json.dumps({"title": _title(message)}, ensure_ascii=False)
    return json.dumps({task: [library] if task == "tags" else []}, ensure_ascii=False)


def _title(message: str) -> str:
    history = _HISTORY.search(message)
    asked = _ASKED.search(history[1]) if history else None
    words = " ".join(asked[1].split()) if asked else "Chat"
    return words if len(words) <= TITLE_CHARACTERS else f"{words[: TITLE_CHARACTERS - 1].rstrip()}…"
