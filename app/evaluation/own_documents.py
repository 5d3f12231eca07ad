"""Make test collections of the documents of a library.

From its own sentences, or from an answer set; with or without the texts, to cut them again.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import islice

from app.core.errors import InvalidInput
from app.core.ports import Catalog, LexicalIndex
from app.core.sentences import sentence_spans
from app.core.text import tokenise, words
from app.core.types import Document, Library
from app.evaluation.answer_cases import AnswerCase
from app.evaluation.collections import Collection, TestQuestion

RECUT_DOCUMENTS = 2_000
"""Documents of the user's own that a run cuts and indexes again; more would take too long."""
_PAGE = 500
_MOST_DOCUMENTS = 20_000
"""Documents listed for a draw; more do not make the sample better."""


def from_library(
    catalog: Catalog,
    lexical: LexicalIndex,
    library: Library,
    *,
    questions: int = 100,
    seed: int = 7,
    words_per_question: int = 6,
) -> Collection:
    """Make a known-item collection of a library: a sentence's telling words ask.

    For drawn passages. Such questions lean towards lexical search; they compare settings on one's
    own text, they do not say how good a system is.

    Args:
        catalog: Where the documents are.
        lexical: Whose document frequencies say which words are telling.
        library: Which one.
        questions: As many, or fewer when fewer documents have a sentence that is long enough.
        seed: Of the draw.
        words_per_question: Rarest words kept, in their order in the sentence.

    References:
        Azzopardi, de Rijke, Balog: Building simulated queries for known-item topics, SIGIR 2007.
    """
    draw = random.Random(seed)  # noqa: S311 - a draw, not a secret
    documents = list(islice(_documents(catalog, library), _MOST_DOCUMENTS))
    found: list[TestQuestion] = []
    relevance: dict[str, dict[str, int]] = {}
    for document in draw.sample(documents, len(documents)):
        if len(found) == questions:
            break
        chunks = catalog.chunks(library, document.doc_id)
        if not chunks:
            continue
        chunk = draw.choice(chunks)
        text = _telling_words(chunk.text, lexical, library, draw, words_per_question)
        if text:
            number = len(found) + 1
            found.append(TestQuestion(f"own-{number}", text, number))
            relevance[f"own-{number}"] = {document.doc_id: 1}
    return Collection(
        f"own {library.value}", (), tuple(found), relevance, catalog.counts(library).documents
    )


def _telling_words(
    text: str, lexical: LexicalIndex, library: Library, draw: random.Random, most: int
) -> str:
    spans = [span for span in sentence_spans(text) if len(words(text[slice(*span)])) >= most]
    if not spans:
        return ""
    sentence = list(dict.fromkeys(words(text[slice(*draw.choice(spans))])))
    stems = {word: (tokenise(word) or [word])[0] for word in sentence}
    _, frequencies = lexical.document_frequencies(library, list(stems.values()))
    rare = sorted(sentence, key=lambda word: frequencies.get(stems[word], 0))[:most]
    return " ".join(word for word in sentence if word in rare)


def from_cases(cases: Sequence[AnswerCase], catalog: Catalog, library: Library) -> Collection:
    """Return an answer set's questions about a library, with expected documents.

    Cases that name no document of the library are left out: nothing says what a search should find
    for them.

    Args:
        cases: Documents are named by doc_id, file name or source key.
        catalog: Where the documents are.
        library: Which one.
    """
    names: dict[str, str] = {}
    documents = 0
    for document in _documents(catalog, library):
        documents += 1
        for name in (document.doc_id, document.filename, document.source_key):
            names.setdefault(name, document.doc_id)
    questions: list[TestQuestion] = []
    relevance: dict[str, dict[str, int]] = {}
    for number, case in enumerate(cases, start=1):
        expected = {names[name]: 1 for name in case.expected_docs if name in names}
        if expected and not case.oos and case.library in (library.value, "all"):
            questions.append(
                TestQuestion(f"case-{number}", case.question, number, case.expected_substrings)
            )
            relevance[f"case-{number}"] = expected
    return Collection(
        f"{library.value} by an answer set", (), tuple(questions), relevance, documents
    )


def with_texts(collection: Collection, catalog: Catalog, library: Library) -> Collection:
    """Return the collection with the texts of a library's documents, to cut again.

    Raises:
        InvalidInput: There are more documents than anybody waits for.
    """
    if catalog.counts(library).documents > RECUT_DOCUMENTS:
        raise InvalidInput(
            f"{library.value} has more than {RECUT_DOCUMENTS} documents; compare chunk sizes and"
            " chunkers on a collection instead"
        )
    found = (
        (document.doc_id, catalog.text(library, document.doc_id).text)
        for document in _documents(catalog, library)
    )
    return collection.with_passages(found)


def _documents(catalog: Catalog, library: Library) -> Iterator[Document]:
    """Yield all live documents of a library, a page at a time."""
    cursor: str | None = None
    while True:
        page, cursor = catalog.documents(library, cursor=cursor, limit=_PAGE)
        yield from page
        if cursor is None:
            return
