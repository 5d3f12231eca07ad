"""Search BM25: one tantivy index per library, rebuildable from the catalog.

It stores chunk ids only. Queries are built from terms; user text is never parsed as syntax.
"""

from __future__ import annotations

import json
import os
import re
import struct
import sys
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache, partial
from pathlib import Path

import tantivy

from app.core.errors import DocuMindError, IndexDamaged, no_files, says_no_files
from app.core.languages import DEFAULT, LANGUAGES, language_of
from app.core.text import MAX_TOKEN_BYTES, content_or_all, lexical_form, tokenise
from app.core.types import Filters, Scored
from app.storage.catalog.rows import LexicalDocument, author_key
from app.storage.files.durable import Steps, disk_full, sync_directory
from app.storage.options import IndexOptions
from app.storage.words.port import NO_SECTION

# Define tantivy's schema and analyzer, equal to `app.core.text.tokenise`.

ANALYZER = "documind"

BODY, TITLE, SECTION = "body", "title", "section"
"""Analysed fields."""

CHUNK_ID, DOC, DOC_ID, SECTION_NAME = "chunk_id", "doc", "doc_id", "section_name"
TYPE, YEAR, AUTHOR, LANGUAGE = "type", "year", "author", "language"
"""Exact fields: `doc` is the catalog's key and what deletions name; `author` holds one folded
name per author, `language` the code by whose rules the words are stemmed."""


def build_schema() -> tantivy.Schema:
    """Return the schema: positions, for phrases, of the body only; frequencies for scores."""
    builder = tantivy.SchemaBuilder()
    for name in (TITLE, SECTION, BODY):
        builder.add_text_field(name, stored=False, tokenizer_name=ANALYZER, index_option="freq")
    builder.add_integer_field(CHUNK_ID, stored=False, indexed=True, fast=True)
    builder.add_integer_field(DOC, stored=False, indexed=True, fast=False)
    builder.add_integer_field(YEAR, stored=False, indexed=True, fast=True)
    for name in (DOC_ID, SECTION_NAME, TYPE, AUTHOR, LANGUAGE):
        builder.add_text_field(name, stored=False, tokenizer_name="raw", index_option="basic")
    return builder.build()


def build_analyzer() -> tantivy.TextAnalyzer:
    """Return the analyzer: split at non-alphanumerics, drop over 40 bytes, lower-case, stem."""
    return (
        tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
        # tantivy keeps what is shorter than its limit
        .filter(tantivy.Filter.remove_long(MAX_TOKEN_BYTES + 1))
        .filter(tantivy.Filter.lowercase())
        .filter(tantivy.Filter.stemmer("english"))
        .build()
    )


MAX_QUERY_TERMS = 1024
"""Distinct terms of one query; a longer text (a pasted page) is searched by its most frequent
ones."""

_RECENT = 8
"""Questions that are searched at the same time, more or less."""

_NOT_WORD = re.compile(r"[^\w ]")


class QueryBuilder:
    """Builds queries for one schema with fixed field weights; immutable."""

    def __init__(self, schema: tantivy.Schema, *, title_boost: float, section_boost: float) -> None:
        """Set weights of title and section against the body's 1.0; 0 is not searched."""
        self._schema = schema
        self._recent = lru_cache(maxsize=_RECENT)(self._text)
        self._fields = [
            (name, boost)
            for name, boost in ((BODY, 1.0), (TITLE, title_boost), (SECTION, section_boost))
            if boost > 0
        ]

    def text(self, text: str, languages: tuple[str, ...]) -> tantivy.Query | None:
        """Return the disjunction of a text's content terms; None without a term.

        A word is searched as each of these languages stems it: a document's words are stemmed by
        the rules of its own.

        Where it holds nothing but function words, they are searched. They would cost most of a
        search (a word of every document has the longest postings), and their scores only add noise.

        Those of the last few texts are at hand: a question is asked once for hits and once more for
        the scores of other chunks.
        """
        return self._recent(text, languages)

    def _text(self, text: str, languages: tuple[str, ...]) -> tantivy.Query | None:
        counts: Counter[str] = Counter()
        for language in languages:
            counts |= Counter(content_or_all(tokenise(text, language), language, language_of(text)))
        if not counts:
            return None
        terms = []
        for token, n in counts.most_common(MAX_QUERY_TERMS):
            for field, boost in self._fields:
                query = tantivy.Query.term_query(self._schema, field, token, "freq")
                if boost * n != 1.0:
                    query = tantivy.Query.boost_query(query, boost * n)
                terms.append((tantivy.Occur.Should, query))
        return tantivy.Query.boolean_query(terms)

    def filters(self, filters: Filters) -> list[tantivy.Query]:
        """Return the conditions, each of which must hold."""
        conditions: list[tantivy.Query] = []
        named = {SECTION_NAME: filters.sections, DOC_ID: filters.doc_ids, TYPE: filters.types}
        for field, values in named.items():
            if values:
                conditions.append(tantivy.Query.term_set_query(self._schema, field, list(values)))
        if filters.exclude_doc_ids:
            excluded = list(filters.exclude_doc_ids)
            without = tantivy.Query.term_set_query(self._schema, DOC_ID, excluded)
            parts = [
                (tantivy.Occur.Must, tantivy.Query.all_query()),
                (tantivy.Occur.MustNot, without),
            ]
            conditions.append(tantivy.Query.boolean_query(parts))
        if filters.year_from is not None or filters.year_to is not None:
            of = self._schema, YEAR, tantivy.FieldType.Integer
            years = {"lower_bound": filters.year_from, "upper_bound": filters.year_to}
            conditions.append(tantivy.Query.range_query(*of, **years))
        name = author_key(filters.author or "")
        if name:
            # As code points: tantivy's dialect gives meaning to more escaped signs than the usual
            # ones.
            pattern = _NOT_WORD.sub(lambda sign: f"\\x{{{ord(sign.group()):X}}}", name)
            conditions.append(tantivy.Query.regex_query(self._schema, AUTHOR, f"(?s).*{pattern}.*"))
        return conditions

    def chunks(self, chunk_ids: Sequence[int]) -> tantivy.Query:
        """Return a query for exactly these chunks, one term each.

        A term set would walk the whole dictionary of ids: 0.45 ms against 0.1 at 50,000 chunks.
        """
        terms = [
            (tantivy.Occur.Should, tantivy.Query.term_query(self._schema, CHUNK_ID, chunk_id))
            for chunk_id in chunk_ids
        ]
        return tantivy.Query.boolean_query(terms)


def conjunction(
    scored: tantivy.Query, conditions: Sequence[tantivy.Query], *, required: bool = True
) -> tantivy.Query:
    """Return a query of all conditions, scored by `scored`, which may miss if not `required`."""
    if not conditions:
        return scored
    parts = [
        (tantivy.Occur.Must, tantivy.Query.const_score_query(condition, 0.0))
        for condition in conditions
    ]
    parts.append((tantivy.Occur.Must if required else tantivy.Occur.Should, scored))
    return tantivy.Query.boolean_query(parts)


# Turn what tantivy says into our errors.

_FULL = ("no space left", "file too large", "quota exceeded")


def lexical_error(path: Path, message: str) -> DocuMindError:
    """Return the error for a message of tantivy about the index at `path`."""
    if any(said in message.lower() for said in _FULL):
        return disk_full(path)
    if says_no_files(message):
        return no_files()
    return IndexDamaged(
        f"the lexical index {path.name!r} failed ({message}): it is rebuilt from the catalog at the"
        " next start; or stop the server and run `documind rebuild`"
    )


# Turn a document's chunks into what tantivy indexes.


def chunk_fields(document: LexicalDocument) -> Iterator[tantivy.Document]:
    """Yield one tantivy document a chunk, in order."""
    language = document.language or DEFAULT
    title = lexical_form(document.title, language)
    authors = [author_key(name) for name in document.authors]
    for chunk_id, section, text in document.chunks:
        fields = tantivy.Document()  # field by field takes half the time of `from_dict`
        fields.add_integer(CHUNK_ID, chunk_id)
        fields.add_integer(DOC, document.doc)
        fields.add_text(DOC_ID, document.doc_id)
        fields.add_text(TYPE, document.type)
        fields.add_text(LANGUAGE, language)
        fields.add_text(TITLE, title)
        for author in authors:
            fields.add_text(AUTHOR, author)
        if document.year is not None:
            fields.add_integer(YEAR, document.year)
        fields.add_text(SECTION_NAME, section)
        if section != NO_SECTION:
            fields.add_text(SECTION, lexical_form(section, language))
        fields.add_text(BODY, lexical_form(text, language))
        yield fields


# Check tantivy's files by the checksums in their footers.

CHECKED_AT_START_BYTES = 256 << 20
"""An index up to this size is checked at every start, which takes a fraction of a second; a
larger one by `documind fsck`."""

_TAIL = struct.Struct("<II")
_MAGIC = 1337
_BLOCK = 1 << 20
_PARTS = ("fast", "fieldnorm", "idx", "pos", "store", "term")
"""The files that every segment has."""


def damaged_files(index: Path, limit_bytes: int | None = None) -> list[str]:
    """Return faults in the files of an index's live segments; empty when sound.

    Args:
        index: The index's directory. One without a `meta.json` holds nothing.
        limit_bytes: Look at nothing when the files take more than this in all.
    """
    if not (index / "meta.json").exists():
        return []
    try:
        segments = _segments(index)
    except (ValueError, KeyError, TypeError) as exc:
        return [f"meta.json cannot be read: {exc!r:.100}"]
    problems: list[str] = []
    files: list[Path] = []
    for segment in segments:
        problems += [
            f"{segment}.{part} is missing"
            for part in _PARTS
            if not (index / f"{segment}.{part}").exists()
        ]
        files += sorted(index.glob(f"{segment}.*"))
    if limit_bytes is not None and sum(path.stat().st_size for path in files) > limit_bytes:
        return problems
    return problems + [
        f"{path.name} is not what was written" for path in files if not _intact(path)
    ]


def lost_files(index: Path) -> bool:
    """Return whether a live segment's file is missing or cut.

    A merge that removes old ones at that moment is no loss.
    """
    # The second look reads what the merge has written.
    return _lacks_files(index) and _lacks_files(index)


def _segments(index: Path) -> list[str]:
    segments = json.loads((index / "meta.json").read_bytes())["segments"]
    return [str(segment["segment_id"]).replace("-", "") for segment in segments]


def _lacks_files(index: Path) -> bool:
    try:
        names = _segments(index)
        return not all(_ends(index / f"{name}.{part}") for name in names for part in _PARTS)
    except (OSError, ValueError, KeyError, TypeError):
        return True


def _ends(path: Path) -> bool:
    """Return whether a file ends like tantivy's files."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _TAIL.size))
        tail = file.read()
    return len(tail) == _TAIL.size and int(_TAIL.unpack(tail)[1]) == _MAGIC


def _intact(path: Path) -> bool:
    """Return whether a file's bytes match the checksum of its footer."""
    size = path.stat().st_size
    with path.open("rb") as file:
        if size < _TAIL.size:
            return False
        file.seek(size - _TAIL.size)
        length, magic = _TAIL.unpack(file.read(_TAIL.size))
        body = size - _TAIL.size - length
        if magic != _MAGIC or body < 0:
            return False
        file.seek(body)
        try:
            wanted = int(json.loads(file.read(length))["crc"])
        except (ValueError, KeyError, TypeError):
            return False
        file.seek(0)
        found = 0
        while body > 0:
            block = file.read(min(_BLOCK, body))
            if not block:
                return False
            found = zlib.crc32(block, found)
            body -= len(block)
    return found == wanted


MIN_HEAP_PER_THREAD = 15_000_000
"""tantivy refuses a smaller arena per indexing thread
(IndexWriter::MEMORY_BUDGET_NUM_BYTES_MIN)."""
NICE = 10
"""Of the threads that index and merge in the background (Linux): rows of a bulk run, and
questions on the same cores, go first."""
MOST_TIED = 1000
"""How far beyond k a tie for the last place is followed; longer ones are cut by tantivy, segment
by segment."""


class TantivyIndex:
    """One library's index; reads are concurrent, writers serialise their calls."""

    def __init__(self, path: Path, options: IndexOptions, steps: Steps) -> None:
        """Open or create the index in directory `path`.

        Raises:
            IndexDamaged: The directory holds something tantivy cannot read.
        """
        self.path = path
        self.failed = False
        """Whether tantivy could not read or write its files, a full disk aside."""
        self._options = options
        self._steps = steps
        self._schema = build_schema()
        path.mkdir(parents=True, exist_ok=True)
        with self._translated():
            self._index = tantivy.Index(self._schema, path=str(path))
            self._index.register_tokenizer(ANALYZER, build_analyzer())
            self._index.config_reader("manual")
            self._reload()
        self._queries = QueryBuilder(
            self._schema, title_boost=options.title_boost, section_boost=options.section_boost
        )
        self._writer: tantivy.IndexWriter | None = None
        """Held nowhere else, local variables included: an error keeps them, and tantivy's lock
        with them."""
        self._background = False
        self._quiet = ThreadPoolExecutor(
            1, thread_name_prefix=f"tantivy-{path.name}", initializer=_be_nice
        )

    # --- read

    def _reload(self) -> None:
        """Search what was committed last."""
        self._index.reload()
        searcher = self._index.searcher()
        held = {code: int(searcher.doc_freq(LANGUAGE, code)) for code in LANGUAGES}
        found = sorted((code for code in held if held[code]), key=lambda code: -held[code])
        self.languages = tuple(found) or (DEFAULT,)
        """Of the documents, that of most chunks first."""

    @property
    def count(self) -> int:
        with self._translated():
            return int(self._index.searcher().num_docs)

    def search(self, text: str, k: int, filters: Filters | None) -> list[Scored]:
        query = self._queries.text(text, self.languages)
        if query is None or k < 1:
            return []
        conditions = self._queries.filters(filters) if filters else []
        return self._run(conjunction(query, conditions), k)

    def score(self, text: str, chunk_ids: Sequence[int]) -> dict[int, float]:
        scores = dict.fromkeys(chunk_ids, 0.0)
        query = self._queries.text(text, self.languages)
        if query is not None and scores:
            # Faster: these alone are walked.
            chosen = conjunction(query, [self._queries.chunks(list(scores))], required=False)
            scores.update((hit.chunk_id, hit.score) for hit in self._run(chosen, len(scores)))
        return scores

    def _run(self, query: tantivy.Query, k: int) -> list[Scored]:
        with self._translated():
            searcher = self._index.searcher()
            limit = k + 1
            hits = searcher.search(query, limit, count=False).hits
            # tantivy cuts a tie by segment; asking further lets the chunk id cut it, so that an
            # imported library answers alike
            while len(hits) == limit and hits[k - 1][0] == hits[-1][0] and limit < k + MOST_TIED:
                limit = min(4 * limit, k + MOST_TIED)
                hits = searcher.search(query, limit, count=False).hits
            ids = searcher.fast_field_values(CHUNK_ID, [address for _, address in hits])
        scored = [Scored(chunk_id, score) for (score, _), chunk_id in zip(hits, ids, strict=True)]
        scored.sort(key=lambda hit: (-hit.score, hit.chunk_id))
        return scored[:k]

    def document_frequencies(self, tokens: Sequence[str]) -> tuple[int, dict[str, int]]:
        with self._translated():
            searcher = self._index.searcher()
            total = int(searcher.num_docs)
            # Deleted chunks count until their segment is merged: never more than all that are
            # alive.
            return total, {
                token: min(total, int(searcher.doc_freq(BODY, token))) for token in tokens
            }

    def near(self, token: str, edits: int, k: int) -> list[int]:
        terms = [
            tantivy.Query.fuzzy_term_query(
                self._schema, field, token, distance=edits, transposition_cost_one=True
            )
            for field in (BODY, TITLE)
        ]
        return self._with_any(terms, k)

    def beginning(self, start: str, k: int) -> list[int]:
        pattern = f"{_NOT_WORD.sub('', start)}.*"
        terms = [tantivy.Query.regex_query(self._schema, field, pattern) for field in (BODY, TITLE)]
        return self._with_any(terms, k)

    def _with_any(self, terms: Sequence[tantivy.Query], k: int) -> list[int]:
        query = tantivy.Query.boolean_query([(tantivy.Occur.Should, term) for term in terms])
        return [hit.chunk_id for hit in self._run(query, k)]

    def ids(self) -> list[int]:
        with self._translated():
            searcher = self._index.searcher()
            every, most = tantivy.Query.all_query(), max(1, searcher.num_docs)
            found = [address for _, address in searcher.search(every, most, count=False).hits]
            return [int(chunk_id) for chunk_id in searcher.fast_field_values(CHUNK_ID, found)]

    def finds(self, chunk_id: int, text: str) -> bool:
        return not tokenise(text) or self.score(text, [chunk_id])[chunk_id] > 0

    # --- write

    def add(self, document: LexicalDocument) -> None:
        with self._writing():
            for fields in chunk_fields(document):
                self._open_writer().add_document(fields)

    def delete(self, doc: int, chunk_ids: Sequence[int]) -> None:  # noqa: ARG002  # one process
        with self._writing(), self._steps.at("tantivy.delete"):
            self._open_writer().delete_documents_by_term(DOC, doc)

    def commit(self) -> None:
        """Make everything queued durable, then searchable.

        Raises:
            DiskFull: No space; the queue is dropped, committed chunks stay searchable.
        """
        if self._writer is None:
            return
        with self._writing():
            with self._steps.at("tantivy.commit"):
                if self._background:
                    self._quiet.submit(self._writer.commit).result()
                else:
                    self._writer.commit()
            # tantivy syncs its files and renames meta.json, but not the directory after that: a
            # power cut could undo the rename.
            sync_directory(self.path, self._steps, "tantivy.fsync_directory")
            self._reload()

    def set_background(self, background: bool) -> None:
        """Set low CPU priority of the indexing threads (Linux); call with empty queue."""
        if background != self._background:
            self._background = background
            self._writer = None

    def rollback(self) -> None:
        # Dropping the writer frees its lock and its queue; unlike its own rollback this works after
        # a failed commit too.
        self._writer = None

    def delete_all(self) -> None:
        with self._writing():
            with self._steps.at("tantivy.delete_all"):
                self._open_writer().delete_all_documents()
            self.commit()

    def compact(self) -> None:
        """Let running merges end and remove files no segment needs."""
        with self._writing():
            writer = self._open_writer()
            with self._steps.at("tantivy.merge"):
                writer.wait_merging_threads()
            self._writer = None
            self._open_writer().garbage_collect_files()

    def damaged(self) -> list[str]:
        return damaged_files(self.path)

    def lost(self) -> bool:
        return lost_files(self.path)

    def close(self) -> None:
        """Stop the indexing threads; queued chunks are dropped."""
        self._writer = None
        self._quiet.shutdown()

    def _open_writer(self) -> tantivy.IndexWriter:
        if self._writer is None:
            threads = self._options.tantivy_threads or min(4, os.cpu_count() or 1)
            heap = max(self._options.tantivy_heap_bytes, MIN_HEAP_PER_THREAD * threads)
            opened = partial(self._index.writer, heap, threads)
            self._writer = self._quiet.submit(opened).result() if self._background else opened()
            # A commit that was cut short leaves files of deletions that no segment names. The next
            # commit that deletes as much takes the same name and fails on it at every start, unless
            # they are removed.
            self._writer.garbage_collect_files()
        return self._writer

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Drop queued words after an error of a write: how many tantivy took is unknown."""
        try:
            with self._translated():
                yield
        except BaseException:
            self._writer = None
            raise

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except BaseException as exc:
            # tantivy-py raises ValueError for every error; its panics are BaseExceptions of pyo3.
            ours = isinstance(exc, (ValueError, OSError))
            if not ours and type(exc).__module__ != "pyo3_runtime":
                raise
            raised = lexical_error(self.path, str(exc))
            self.failed = self.failed or isinstance(raised, IndexDamaged)
            raise raised from exc


def _be_nice() -> None:
    """Lower the priority of this thread, where threads have one."""
    if sys.platform == "linux":  # of this thread alone
        os.setpriority(os.PRIO_PROCESS, 0, max(NICE, os.getpriority(os.PRIO_PROCESS, 0)))
