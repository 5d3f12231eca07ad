"""Blank what a stored answer quotes of a deleted document. Works on the JSON record; knows its field names, not its classes."""

from __future__ import annotations

from collections.abc import Mapping

BLANK = "\u2588"
"""Stands for one removed character, so that offsets into the answer stay true."""


def redact_answer(record: Mapping[str, object], library: str, doc_id: str) -> tuple[dict[str, object], int]:
    """Return the record without the document's words, and how many quotes and sentences were blanked.

    Blanked are its passages' previews and titles, every quote of it, and each sentence of the answer that cites it, since an
    extractive answer is made of quotes.
    """
    redacted = dict(record)
    numbers: set[object] = set()
    blanked = 0
    sources = []
    for source in _records(record.get("sources")):
        if source.get("doc_id") == doc_id and source.get("library", library) == library:
            numbers.add(source.get("n"))
            source |= {"preview": "", "title": "", "authors": [], "source_url": None}
        sources.append(source)
    if "sources" in record:
        redacted["sources"] = sources
    answer = str(record.get("answer") or "")
    sentences = []
    for sentence in _records(record.get("sentences")):
        citations = _records(sentence.get("citations"))
        cited = [citation for citation in citations if citation.get("n") in numbers]
        if cited:
            blanked += len(cited)
            for citation in cited:
                citation["quote"] = ""
            start, end = _offset(sentence.get("answer_start")), _offset(sentence.get("answer_end"))
            answer = answer[:start] + BLANK * (min(end, len(answer)) - start) + answer[end:]
            sentence |= {"text": BLANK * len(str(sentence.get("text") or "")), "citations": citations}
        sentences.append(sentence)
    if "sentences" in record:
        redacted["sentences"] = sentences
    if "answer" in record:
        redacted["answer"] = answer
    if numbers:
        redacted["rewritten_query"] = None
    return redacted, blanked


def _records(value: object) -> list[dict[str, object]]:
    return [dict(item) for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def _offset(value: object) -> int:
    return value if isinstance(value, int) and value >= 0 else 0
