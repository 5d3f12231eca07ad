"""Read test collections: passages, questions, judgements.

From a folder or from `datasets` in BEIR layout, or documents with questions about them.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from app.core.errors import InvalidInput
from app.core.ids import regular_file
from app.core.sentences import sentence_spans
from app.core.text import tokenise, words
from app.core.types import Library, RawDocument
from app.evaluation.cases import CaseBody
from app.ingest.parsers.formats import FORMATS

if TYPE_CHECKING:
    from app.storage.catalog.documents import Catalog
    from app.storage.words.port import LibraryWords

Parity = Literal["even", "odd"]


@dataclass(frozen=True, slots=True)
class TestPassage:
    """A passage of a collection, or a whole file; indexed as one document."""

    __test__ = False  # not a pytest class

    id: str
    title: str
    text: str
    file: Path | None = None
    """What is indexed instead of the text, with its own name."""

    def raw(self, collection: str) -> RawDocument:
        if self.file is not None:
            return RawDocument(self.file.name, self.file.name, self.file.read_bytes())
        name = f"{collection}-{self.id}.txt"
        return RawDocument(name, name, self.document.encode())

    @property
    def document(self) -> str:
        """The file a person would have: the title, a blank line, the text."""
        return f"{self.title}\n\n{self.text}" if self.title else self.text


@dataclass(frozen=True, slots=True)
class TestQuestion:
    """A question of a collection."""

    __test__ = False

    id: str
    text: str
    line: int
    """Its line in the file, from 1; parity splits tuning from reporting."""
    answers: tuple[str, ...] = ()
    """Strings any of which answers it."""
    answerable: bool = True


@dataclass(frozen=True, slots=True)
class Collection:
    """Passages, questions and relevance judgements."""

    name: str
    passages: tuple[TestPassage, ...]
    questions: tuple[TestQuestion, ...]
    relevance: Mapping[str, Mapping[str, int]]
    """Question id to passage id to grade; grades over 0 are relevant."""
    documents: int | None = None
    """How many documents there are where the passages are not listed."""

    @property
    def size(self) -> int:
        return len(self.passages) if self.documents is None else self.documents

    def with_passages(self, texts: Iterable[tuple[str, str]]) -> Collection:
        """Return the same questions over these passages, each an id and a text."""
        return replace(
            self,
            passages=tuple(TestPassage(name, "", text) for name, text in texts),
            documents=None,
        )

    def judged(self) -> Collection:
        """Return only the answerable questions that have a relevant passage."""
        kept = tuple(
            q
            for q in self.questions
            if q.answerable and any(grade > 0 for grade in self.relevance.get(q.id, {}).values())
        )
        return replace(self, questions=kept)

    def half(self, parity: Parity) -> Collection:
        """Return the questions of even or odd lines: tune on one, report on the other."""
        remainder = 0 if parity == "even" else 1
        return replace(self, questions=tuple(q for q in self.questions if q.line % 2 == remainder))

    def sample(self, n: int, seed: int) -> Collection:
        """Return at most n questions, drawn without replacement, in their order."""
        if n >= len(self.questions):
            return self
        # a draw, not a secret
        chosen = set(random.Random(seed).sample(range(len(self.questions)), n))  # noqa: S311
        return replace(
            self, questions=tuple(q for i, q in enumerate(self.questions) if i in chosen)
        )


def from_path(folder: Path) -> Collection:
    """Read a folder by the first of `LAYOUTS` whose file stands there.

    Raises:
        InvalidInput: It is no folder, has no such file, or a row is not as the layout says.
    """
    if not folder.is_dir():
        raise InvalidInput(f"{str(folder)!r} is no folder; a collection has {EXPECTED}")
    read = _layout_of(folder)
    if read is None:
        raise InvalidInput(f"no collection in {folder.name!r}; expected {EXPECTED}")
    try:
        return read(folder)
    except (LookupError, TypeError) as exc:
        raise InvalidInput(
            f"a row of {folder.name!r} is not as its layout says: {exc!r}; docs/evaluation.md has"
            " the fields"
        ) from exc


DOCUMENTS = "questions.json"
"""Questions about the other files of its folder, whole documents of any format."""


def from_documents(folder: Path) -> Collection:
    """Read documents and `questions.json`: rows of `id`, `question` and the `file` that answers.

    Where `file` is null nothing answers it. Questions with an earlier one (`history`) are left out.

    Raises:
        InvalidInput: A row lacks a field, or names a file that is not there.
    """
    rows = _rows(folder / DOCUMENTS)
    suffixes = {suffix for one in FORMATS.values() for suffix in one.suffixes}
    files = [one for one in sorted(folder.iterdir()) if one.suffix.lower() in suffixes]
    files = [one for one in files if one.name not in (DOCUMENTS, README)]
    named = {str(row["file"]) for row in rows if row["file"] is not None}
    if missing := sorted(named - {one.name for one in files}):
        raise InvalidInput(
            f"{DOCUMENTS} names {missing[0]!r}, which is no document in {folder.name!r}"
        )
    kept = [(line, row) for line, row in enumerate(rows, 1) if not row.get("history")]
    return Collection(
        folder.name,
        tuple(TestPassage(one.name, "", "", one) for one in files),
        tuple(
            TestQuestion(str(row["id"]), str(row["question"]), line, (), row["file"] is not None)
            for line, row in kept
        ),
        {str(row["id"]): {str(row["file"]): 1} for _, row in kept if row["file"] is not None},
    )


def _rows(path: Path) -> Sequence[Mapping[str, object]]:
    try:
        rows = json.loads(regular_file(path, MOST_BYTES).read_text(encoding="utf-8"))
    except (OSError, ValueError) as exc:
        raise InvalidInput(f"{path.name!r} is not JSON: {exc}") from exc
    fields = {"id", "question", "file"}
    if not isinstance(rows, list) or not all(
        isinstance(row, dict) and fields <= row.keys() for row in rows
    ):
        raise InvalidInput(f"{path.name!r} is no list of objects with 'id', 'question' and 'file'")
    return rows


MOST_BYTES = 2**30
"""Of a file of a collection."""


def from_folder(folder: Path) -> Collection:
    """Read BEIR layout: corpus.jsonl, queries.jsonl, qrels.tsv or qrels/test.tsv.

    With or without a header line. Passages without text are left out. Questions may carry `answers`
    and `answerable`.

    Raises:
        InvalidInput: A file is missing or a line is not what the layout says.

    References:
        Thakur et al.: BEIR, NeurIPS 2021;
            https://github.com/beir-cellar/beir/wiki/Load-your-custom-dataset
    """
    qrels = next(
        (path for path in (folder / "qrels.tsv", folder / "qrels" / "test.tsv") if path.is_file()),
        None,
    )
    if qrels is None:
        raise InvalidInput(
            f"no qrels.tsv or qrels/test.tsv in {folder.name!r}; a collection has corpus.jsonl,"
            " queries.jsonl and qrels"
        )
    return _assemble(
        folder.name,
        json_lines(folder / "corpus.jsonl", "_id", "text"),
        json_lines(folder / "queries.jsonl", "_id", "text"),
        _judgements(qrels),
    )


def from_datasets(location: str, split: str = "test") -> Collection:
    """Read BEIR layout through `datasets`: a Parquet folder, or a hub repository.

    A folder has corpus, queries and qrels. On the hub, `BeIR/scifact` keeps its judgements in
    `BeIR/scifact-qrels`.

    Raises:
        InvalidInput: A folder without the three tables, a repository that cannot be read, or
            `datasets` is not installed.
    """
    if find_spec("datasets") is None:
        raise InvalidInput(
            "Parquet and the hub need the package `datasets`: run: pip install datasets"
        )
    from datasets import load_dataset  # noqa: PLC0415 - the bulk extra, two seconds to import

    folder = Path(location)
    if folder.is_dir():
        tables = {}
        for name in ("corpus", "queries", "qrels"):
            files = sorted(
                str(path)
                for path in (*folder.glob(f"{name}*.parquet"), *folder.glob(f"{name}/*.parquet"))
            )
            if not files:
                raise InvalidInput(
                    f"no Parquet file of {name!r} in {folder.name!r}; expected {name}.parquet or"
                    f" {name}/*.parquet"
                )
            tables[name] = load_dataset("parquet", data_files=files, split="train")
    else:
        try:
            tables = {
                "corpus": load_dataset(location, "corpus", split="corpus"),
                "queries": load_dataset(location, "queries", split="queries"),
                "qrels": load_dataset(f"{location}-qrels", split=split),
            }
        except (OSError, ValueError) as exc:  # not there, not reachable, or of another layout
            raise InvalidInput(
                f"data set {location!r} cannot be read from the hub in BEIR layout: {exc}"
            ) from exc
    judgements = (
        (str(row["query-id"]), str(row["corpus-id"]), int(row["score"])) for row in tables["qrels"]
    )
    return _assemble(folder.name, tables["corpus"], tables["queries"], judgements)


def _assemble(
    name: str,
    corpus: Iterable[Mapping[str, object]],
    queries: Iterable[Mapping[str, object]],
    judgements: Iterable[tuple[str, str, int]],
) -> Collection:
    passages = tuple(
        TestPassage(str(row["_id"]), str(row.get("title") or ""), str(row["text"]))
        for row in corpus
        if str(row["text"]).strip()
    )
    questions = tuple(_question(row, line) for line, row in enumerate(queries, start=1))
    relevance: dict[str, dict[str, int]] = {}
    for question, passage, grade in judgements:
        relevance.setdefault(question, {})[passage] = grade
    return Collection(name, passages, questions, relevance)


def _question(row: Mapping[str, object], line: int) -> TestQuestion:
    answers = row.get("answers")
    return TestQuestion(
        str(row["_id"]),
        str(row["text"]),
        line,
        tuple(str(answer) for answer in answers)
        if isinstance(answers, Sequence) and not isinstance(answers, str)
        else (),
        bool(row.get("answerable", True)),
    )


def json_lines(path: Path, *fields: str) -> Iterator[Mapping[str, Any]]:
    """Yield the objects of a file of JSON lines, each of which must have these fields."""
    try:
        with regular_file(path, MOST_BYTES).open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    row = json.loads(line)
                    if not isinstance(row, dict) or not set(fields) <= row.keys():
                        has = f" with {' and '.join(map(repr, fields))}" if fields else ""
                        raise InvalidInput(f"line {number} of {path.name!r} is not an object{has}")
                    yield row
    except OSError as exc:
        raise InvalidInput(f"{path.name!r} cannot be read; a collection has {EXPECTED}") from exc
    except json.JSONDecodeError as exc:
        raise InvalidInput(f"{path.name!r} is not JSON Lines: {exc}") from exc


def _judgements(path: Path) -> Iterator[tuple[str, str, int]]:
    for number, line in enumerate(
        regular_file(path, MOST_BYTES).read_text(encoding="utf-8").splitlines(), start=1
    ):
        cells = line.split("\t")
        if number == 1 and cells[-1].strip() == "score":
            continue
        try:
            question, passage, grade = cells
            yield question, passage, int(grade)
        except ValueError as exc:
            raise InvalidInput(
                f"line {number} of {path.name!r} is {line!r}; expected question, passage, grade by"
                " tabs"
            ) from exc


README = "README.md"
"""Says what a folder has, and is no text of it."""
LAYOUTS: Mapping[str, Callable[[Path], Collection]] = {
    "corpus*.parquet": lambda folder: from_datasets(str(folder)),
    "corpus/*.parquet": lambda folder: from_datasets(str(folder)),
    DOCUMENTS: from_documents,
    "corpus.jsonl": from_folder,
}
"""The file that a layout is known by, and what reads it; the first whose file is there."""
EXPECTED = ", or ".join(LAYOUTS)


def _layout_of(folder: Path) -> Callable[[Path], Collection] | None:
    return next(
        (
            read
            for name, read in LAYOUTS.items()
            if any(path.is_file() for path in folder.glob(name))
        ),
        None,
    )


def collections_below(folder: Path) -> tuple[list[Path], list[Path]]:
    """Return the folders below that `from_path` reads, and the outermost others that have files.

    Folders inside a collection, and those around one, are neither.
    """
    folders = [one for one in sorted(folder.rglob("*")) if one.is_dir()]
    found = [one for one in folders if _layout_of(one)]
    around = {parent for one in found for parent in (one, *one.parents)}
    others: list[Path] = []
    for one in folders:
        inside = any(known in one.parents for known in (*found, *others))
        if one not in around and not inside and any(path.is_file() for path in one.iterdir()):
            others.append(one)
    return found, others


# Make test collections of the documents of a library.

RECUT_DOCUMENTS = 2_000
"""Documents of the user's own that a run cuts and indexes again; more would take too long."""
MOST_DOCUMENTS = 20_000
"""Documents listed for a draw; more do not make the sample better."""


def from_library(
    catalog: Catalog,
    lexical: LibraryWords,
    library: Library,
    *,
    questions: int = 100,
    seed: int = 7,
    words_per_question: int = 6,
) -> Collection:
    """Make a known-item collection of a library: a sentence's telling words ask.

    For drawn passages. Such questions lean towards lexical search; they compare settings on one's
    own text, they do not say how good a system is. There are fewer than `questions` when fewer
    documents have a sentence that is long enough.

    References:
        Azzopardi, de Rijke, Balog: Building simulated queries for known-item topics, SIGIR 2007.
    """
    draw = random.Random(seed)  # noqa: S311 - a draw, not a secret
    documents = list(islice(catalog.every_document(library), MOST_DOCUMENTS))
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
    text: str, lexical: LibraryWords, library: Library, draw: random.Random, most: int
) -> str:
    spans = [span for span in sentence_spans(text) if len(words(text[slice(*span)])) >= most]
    if not spans:
        return ""
    sentence = list(dict.fromkeys(words(text[slice(*draw.choice(spans))])))
    stems = {word: (tokenise(word) or [word])[0] for word in sentence}
    _, frequencies = lexical.document_frequencies(library, list(stems.values()))
    rare = sorted(sentence, key=lambda word: frequencies.get(stems[word], 0))[:most]
    return " ".join(word for word in sentence if word in rare)


def from_cases(cases: Sequence[CaseBody], catalog: Catalog, library: Library) -> Collection:
    """Return an answer set's questions about a library, with expected documents.

    Documents are named by doc_id, file name or source key. Cases that name no document of the
    library are left out: nothing says what a search should find for them.
    """
    names: dict[str, str] = {}
    documents = 0
    for document in catalog.every_document(library):
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
        for document in catalog.every_document(library)
    )
    return collection.with_passages(found)
