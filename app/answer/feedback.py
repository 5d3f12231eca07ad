"""Turn ratings of stored answers into an answer set for evaluation.

`documind evaluate answers` reads it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TypedDict

from app.answer.stored_records import StoredRecord


class CaseRecord(TypedDict):
    """One line of an answer set (docs/evaluation.md)."""

    question: str
    library: str
    intent: str
    expected_substrings: list[str]
    keywords: list[str]
    expected_docs: list[str]
    oos: bool


def to_case(record: Mapping[str, object]) -> CaseRecord | None:
    """Return the case that a rated answer makes; None if it names nothing right.

    A right passage names the document to find. Thumbs up confirm the documents that the answer
    cites, or that refusing was right. Thumbs down alone say that something was wrong, not what.

    Args:
        record: A stored answer with its `feedback`, as `AnswerStore.list(with_feedback=True)`
            returns them.
    """
    answer = StoredRecord.model_validate(record)
    feedback = answer.feedback or {}
    if answer.kept != "full" or answer.status not in ("answered", "abstained"):
        return None
    passage, approved = feedback.get("passage"), feedback.get("thumbs") == "up"
    if passage is None and not approved:
        return None
    cited = {citation.n for sentence in answer.sentences for citation in sentence.citations}
    documents = [source.doc_id for source in answer.sources if source.n in cited]
    return CaseRecord(
        question=answer.asked.question,
        library=answer.library,
        intent="question",
        expected_substrings=[],
        keywords=[],
        expected_docs=[str(passage["doc_id"])]
        if isinstance(passage, Mapping)
        else list(dict.fromkeys(documents)),
        oos=passage is None and answer.status == "abstained",
    )


def answer_set(records: Iterable[Mapping[str, object]]) -> str:
    """Return rated answers as JSON lines, one a question, newest rating first.

    Only the newest counts. Empty without any.
    """
    cases: dict[tuple[str, str], CaseRecord] = {}
    for record in records:  # newest first
        case = to_case(record)
        if case is not None:
            cases.setdefault((case["question"], case["library"]), case)
    return "".join(f"{json.dumps(case, ensure_ascii=False)}\n" for case in cases.values())
