"""Blank quotes of a deleted document in a stored answer's JSON record.

It knows the record's field names, not its classes.
"""

from __future__ import annotations

from collections.abc import Mapping

BLANK = "\u2588"
"""Stands for one removed character, so that offsets into the answer stay true."""


def redact_answer(
    record: Mapping[str, object], library: str, doc_id: str
) -> tuple[dict[str, object], int]:
    """Return the record without the document's words, and how many were blanked.

    Blanked are its passages' previews and titles, every quote of it, and of the answer everything
    but the sentences that cite other documents alone: what cites nothing, a table or an inventory,
    may be made of its words as well.
    """
    redacted = dict(record)
    numbers: set[object] = set()
    sources = []
    for source in _records(record.get("sources")):
        if source.get("doc_id") == doc_id and source.get("library", library) == library:
            numbers.add(source.get("n"))
            source |= {"preview": "", "title": "", "authors": [], "source_url": None}
        sources.append(source)
    if "sources" in record:
        redacted["sources"] = sources
    if not numbers:
        return redacted, 0
    blanked = 0
    kept: set[int] = set()
    sentences = []
    for sentence in _records(record.get("sentences")):
        citations = _records(sentence.get("citations"))
        cited = [citation for citation in citations if citation.get("n") in numbers]
        blanked += len(cited)
        for citation in cited:
            citation["quote"] = ""
        if cited or not citations:
            sentence |= {
                "text": BLANK * len(str(sentence.get("text") or "")),
                "citations": citations,
            }
        else:
            kept.update(
                range(_offset(sentence.get("answer_start")), _offset(sentence.get("answer_end")))
            )
        sentences.append(sentence)
    if "sentences" in record:
        redacted["sentences"] = sentences
    if "answer" in record:
        answer = str(record.get("answer") or "")
        redacted["answer"] = "".join(
            sign if at in kept or sign.isspace() else BLANK for at, sign in enumerate(answer)
        )
    redacted["rewritten_query"] = None
    redacted |= dict.fromkeys(
        {"quote", "model_text"} & redacted.keys()
    )  # both may be made of its words
    return redacted, blanked


def _records(value: object) -> list[dict[str, object]]:
    return (
        [dict(item) for item in value if isinstance(item, Mapping)]
        if isinstance(value, list)
        else []
    )


def _offset(value: object) -> int:
    return value if isinstance(value, int) and value >= 0 else 0
