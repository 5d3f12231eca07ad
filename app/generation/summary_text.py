"""Write a summary out of quoted key sentences, part by part."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from app.core.types import Evidence
from app.generation.document_parts import document_parts
from app.generation.key_sentences import MOST, KeyPart, key_sentences
from app.generation.quoted import QuotedText, Quoting

_FEWEST_OF_SEVERAL = 2
"""Sentences that each of several documents gives at least."""


def quoted_summary(evidence: Sequence[Evidence]) -> QuotedText:
    """Return the key sentences of one or several documents, under their headings.

    Args:
        evidence: All passages of the documents, in reading order.

    Returns:
        Five to twelve sentences of one document; fewer of each where there are several. Empty if
        nothing can be quoted.
    """
    groups = [
        tuple(group)
        for _, group in groupby(evidence, key=lambda item: item.hit.passage.document.doc_id)
    ]
    most = MOST if len(groups) == 1 else max(_FEWEST_OF_SEVERAL, MOST // len(groups))
    quoting = Quoting()
    for group in groups:
        found = key_sentences(document_parts(group), most)
        if not found:
            continue
        if len(groups) > 1:
            quoting.start_block(f"## {group[0].hit.passage.document.title}")
        _write(quoting, found)
    return quoting.done()


def _write(quoting: Quoting, found: Sequence[KeyPart]) -> None:
    shown = ""
    for one in found:
        if one.part.name != shown and one.part.name:
            quoting.start_block(f"### {one.part.name}")
        shown = one.part.name
        quoting.start_block()
        for at, sentence in enumerate(one.sentences):
            quoting.say(" " if at else "")
            quoting.quote(sentence)
