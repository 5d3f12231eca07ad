"""Documents that say the same are found, each in one group."""

from __future__ import annotations

from dataclasses import replace

from app.core.types import Document
from app.storage.maintenance.duplicates import duplicates
from tests.stores import passage


def document(doc_id: str, **fields: object) -> Document:
    known = {"doc_id": doc_id, "sha256": doc_id, "title": doc_id, "authors": (), **fields}
    return replace(passage("").document, **known)  # type: ignore[arg-type]


def test_equal_bytes_texts_and_versions_are_told_apart() -> None:
    texts = {"c": "t" * 90, "d": "t" * 90, "e": "u" * 90}
    asked: list[str] = []

    def text_of(one: Document) -> str:
        asked.append(one.doc_id)
        return texts[one.doc_id]

    found = duplicates(
        [
            document("a", sha256="same", characters=50),
            document("b", sha256="same", characters=50),
            *(document(name, characters=90) for name in "cde"),
            document("f", characters=70, arxiv_id="2210.03629v1"),
            document("g", characters=71, arxiv_id="2210.03629v3"),
            document("h", characters=72, title="How frogs breathe in ponds", authors=("C. Lee",)),
            document("i", characters=73, title="How Frogs Breathe in Ponds", authors=("Ch. Lee",)),
            document("j", characters=74, title="How frogs breathe in ponds", authors=("D. Moss",)),
            document("k", characters=75, title="Annual report"),
            document("l", characters=76, title="Annual report"),
        ],
        text_of,
    )
    assert [(one.likeness, [each.doc_id for each in one.documents]) for one in found] == [
        ("same_bytes", ["a", "b"]),
        ("same_text", ["c", "d"]),
        ("versions", ["f", "g"]),
        ("versions", ["h", "i"]),
    ]
    assert asked == ["c", "d", "e"]
