"""Answer the modes that quotes can answer: comparisons as tables, lists of what a method takes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import product
from typing import cast, get_args

from app.answer.search import Search
from app.answer.steps import CERTAIN, Found, Quoted
from app.answer.strategies import numbered
from app.answer.targets import MOST_DOCUMENTS, Targets, with_headings
from app.core.sentences import sentence_spans
from app.core.types import Document, Evidence, Hit, Mode, Notice, Quote
from app.generation.quote.calculations import (
    CALCULATED_RIGHT,
    MOST_PASSAGES,
    calculate,
    has_rows,
    lines_of,
    names_labels,
    operation_of,
    write_calculation,
)
from app.generation.quote.candidates import Candidate
from app.generation.quote.comparisons import (
    ListedMode,
    NamedComparison,
    comparison_in,
    sentence_of,
    sentence_of_all,
    write_checklist,
    write_comparison,
)
from app.generation.quote.quote_features import named_things
from app.generation.quote.quoting import ExtractiveGenerator, QuotedText, Quoting, Selection
from app.generation.quote.versions import same_with_other_figures, versions

SHAPED_MODES: frozenset[Mode] = frozenset({"compare", *get_args(ListedMode)})
"""Modes whose answer is a table or a list of quotes."""
_POINTS_AT = re.compile(
    r"\bthis\b|\bthe (?:paper|study|document|article|report|work|experiments?|results?)\b", re.I
)
"""Words that point at the one document there is."""
_MOST_LISTS = 3
"""Documents of which a list is made for one question."""
_MOST_TABLED = 3
"""Documents whose tables are calculated with for one question."""
_ROWS_NEEDED = 2
"""Documents that a comparison of documents must quote."""
NEEDS_MODEL = Notice(
    "mode_needs_model",
    "No table or list could be made of the documents' own words. With a language model that is not"
    " small the answer would be written from them.",
)
STANDS_ALONE = Notice(
    "mode_needs_model",
    "The table or list is made of the documents' own words alone. The model was not asked: of one"
    " this small, what it adds below is mostly misread. A larger one is.",
)


@dataclass(frozen=True, slots=True)
class EngineModes:
    """Makes tables and lists of quotes; stateless."""

    targets: Targets
    extractive: ExtractiveGenerator

    def shaped(self, quoted: Quoted, *, leads: bool) -> Quoted | None:
        """Return the quote as the table or list that the question's mode asks for; else None.

        A comparison is also made in the mode `general`, where each thing has its sentence; so are
        a calculation from the rows of a table, and an order of versions of one statement.
        """
        mode = quoted.found.asked.question.mode
        if mode in get_args(ListedMode):
            text = self._list(quoted.found, quoted.selection)
        elif mode in {"compare", "general"}:
            text = self._table(quoted.found, quoted.selection)
        else:
            text = None
        is_free = text is None and mode == "general"
        dated = self._versions(quoted.found, quoted.selection) if is_free else None
        sums = self._calculated(quoted.found) if is_free and dated is None else None
        if sums is not None:
            quoted = replace(quoted, confidence=max(quoted.confidence, CALCULATED_RIGHT))
        text = text or dated or sums
        if text is None:
            return None
        named = mode in get_args(ListedMode) and not _unlisted(quoted.selection)
        found = quoted.found.using(text.evidence)
        if leads and not is_free and found.asked.choice.model is not None:
            found = found.noted(STANDS_ALONE)
        return replace(
            quoted,
            found=found,
            quote=Quote(text.text, text.sentences, leads),
            confidence=CERTAIN if named else quoted.confidence,
            shaped=True,
        )

    def _table(self, found: Found, selection: Selection) -> QuotedText | None:
        named = comparison_in(found.query)
        compares = found.asked.question.mode == "compare"
        both = None
        if named is not None:
            rows, both = self._by_thing(named, found.search, selection)
        elif compares:
            rows = _by_document(selection.ranked)
        else:
            return None
        filled = sum(row is not None for row in rows.values())
        needed = len(rows) if not compares else _ROWS_NEEDED if named is None else 1
        if filled < needed:
            return None
        quoting = Quoting(found.evidence)
        write_comparison(quoting, rows, both)
        return quoting.done()

    def _by_thing(
        self, named: NamedComparison, search: Search, selection: Selection
    ) -> tuple[dict[str, Candidate | None], Candidate | None]:
        """Return the best sentence of each thing, and the best that names all of them.

        A sentence stands in two rows only where a thing has no other.
        """
        own: dict[str, tuple[str, NamedComparison, Sequence[Candidate]]] = {}
        for thing, (point, one) in product(named.things, named.by_point()):
            query = one.query(thing)
            found = self.extractive.select(query, numbered(search(query).hits))
            own[f"{thing}: {point}" if point else thing] = thing, one, found.ranked
        everything = [*selection.ranked, *(hit for *_, ranked in own.values() for hit in ranked)]
        both = None if named.points else sentence_of_all(named, everything)
        used = [both.text] if both and not named.respect else []
        rows: dict[str, Candidate | None] = {}
        for row, (thing, one, own_ranked) in own.items():
            said = [*own_ranked, *selection.ranked]
            fresh = [other for other in said if other.text not in used]
            rows[row] = best = sentence_of(thing, one, fresh) or sentence_of(thing, one, said)
            used += [best.text] if best else []
        return rows, both

    def _list(self, found: Found, selection: Selection) -> QuotedText | None:
        documents = self._documents(found, selection)
        quoting = Quoting(found.evidence)
        chosen = _unlisted(selection)
        for at, one in enumerate(chosen):
            quoting.say(" " if at else "")
            quoting.quote(one)
        filled = 0
        for document in documents:
            quoting.start_block(f"### {document.title}\n")
            whole = self.targets.evidence([document])
            mode = cast("ListedMode", found.asked.question.mode)
            filled += write_checklist(quoting, mode, found.query, whole)
        return quoting.done() if filled or chosen else None

    def _versions(self, found: Found, selection: Selection) -> QuotedText | None:
        """Return the newest valid of several versions of one statement, and behind it the others.

        None where there is only one, or where nothing tells which is newer.
        """
        if not selection.chosen:
            return None
        said = same_with_other_figures(selection.chosen[0], selection.ranked)
        if len(said) < 2:
            return None
        documents = dict.fromkeys(one.item.hit.passage.document for one in said)
        openings = {
            document: self.targets.evidence([document])[0].hit.passage.chunk.text
            for document in documents
        }
        now = datetime.now(UTC)
        today = now.year * 10_000 + now.month * 100 + now.day
        found_versions = versions(found.query, said, openings, today)
        quoting = Quoting(found.evidence)
        for at, one in enumerate(found_versions):
            quoting.say(f"\n\n{one.shown}: " if at else "")
            quoting.quote(one.said)
        return quoting.done() if found_versions else None

    def _calculated(self, found: Found) -> QuotedText | None:
        """Return what is calculated from a table of a document that was found, with its rows."""
        if operation_of(found.query) is None:
            return None
        for document, is_weak in self._tabled(found):
            whole = self.targets.evidence([document])
            if len(whole) > MOST_PASSAGES:
                continue
            lines = lines_of(with_headings(self.targets.catalog, whole))
            if made := calculate(found.query, lines, whole=is_weak):
                quoting = Quoting(found.evidence)
                write_calculation(quoting, made)
                return quoting.done()
        return None

    def _tabled(self, found: Found) -> Iterator[tuple[Document, bool]]:
        """Yield documents with rows that were found, then, marked so, what was found too weakly.

        Every passage of a large table has its labels, so that none of their words tells passages
        apart; it is weak however well the question names it.
        """
        passages = [item.hit.passage for item in found.evidence if not item.hit.fallback]
        tabled = (passage.document for passage in passages if has_rows(passage.chunk.text))
        near = dict.fromkeys(list(dict.fromkeys(tabled))[:_MOST_TABLED])
        yield from ((document, False) for document in near)
        of_document: dict[Document, list[Hit]] = {}
        for hit in found.search.without_cutoff(found.query).hits:
            if has_rows(hit.passage.chunk.text) and hit.passage.document not in near:
                of_document.setdefault(hit.passage.document, []).append(hit)
        for document, hits in list(of_document.items())[:_MOST_TABLED]:
            if names_labels(found.query, lines_of(numbered(hits))):
                yield document, True

    def _documents(self, found: Found, selection: Selection) -> tuple[Document, ...]:
        """Return the documents to go through.

        Those given; else the one whose title the question names; else the one that answers best;
        else the only one there is.
        """
        question, query = found.asked.question, found.query
        if question.filters.doc_ids:
            return self.targets.given(question)[:_MOST_LISTS]
        for name in named_things(query):
            if titled := self.targets.titled(question, name):
                return titled
        best = [one.item for one in selection.chosen]
        best += [item for item in found.evidence if not item.hit.fallback]
        if best:
            return (best[0].hit.passage.document,)
        return self.targets.only_one(question) if _POINTS_AT.search(query) else ()


def _unlisted(selection: Selection) -> list[Candidate]:
    return [one for one in selection.chosen if not one.listed]


def _by_document(ranked: Sequence[Candidate]) -> dict[str, Candidate | None]:
    """Return the best sentence of each document, by its title."""
    rows: dict[str, Candidate | None] = {}
    for one in ranked:
        rows.setdefault(one.item.hit.passage.document.title, None if one.dangles else one)
    return dict(list(rows.items())[:MOST_DOCUMENTS])


# List data sets named in passages (`datasets` mode), without a model.

_MAX_SENTENCE_CHARS = 320
_MAX_ROWS = 30

# Names that need no phrase around them; matched as written, so that "Adult" the data set is not
# "adult" the word.
_KNOWN = tuple(
    "ImageNet CIFAR-10 CIFAR-100 MNIST Fashion-MNIST SVHN CelebA LSUN MS-COCO COCO PASCAL-VOC"
    " Cityscapes KITTI nuScenes ADE20K"
    " OpenImages LAION-5B LAION-400M SQuAD GLUE SuperGLUE MultiNLI SNLI MNLI HotpotQA TriviaQA"
    " NaturalQuestions MS-MARCO BEIR CoQA"
    " QuAC DROP MMLU HellaSwag ARC-Challenge BIG-bench GSM8K HumanEval MBPP TruthfulQA WinoGrande"
    " CommonsenseQA BoolQ PubMedQA"
    " BioASQ SciFact NFCorpus FiQA FEVER Quora CNN/DailyMail XSum WikiText-103 WikiText-2"
    " BookCorpus OpenWebText C4"
    " RedPajama PubMed MIMIC-III MIMIC-IV CheXpert LibriSpeech VoxCeleb AudioSet CommonVoice TIMIT"
    " UCF101 HMDB51"
    " Kinetics-400 Kinetics-700 ShapeNet ModelNet40 ScanNet OGB Cora CiteSeer ZINC QM9 MoleculeNet"
    " MovieLens"
    " Netflix-Prize CoNLL-2003 OntoNotes Penn-Treebank WMT14 Europarl OPUS Multi30K Flickr30k"
    " VQAv2 GQA CLEVR OK-VQA TextVQA"
    " UniProt GenBank TCGA UKBiobank ADNI HAPNEST SDSS ERA5 Landsat".split()
)
_KNOWN_NAME = re.compile(
    r"(?<![\w-])(?:"
    + "|".join(
        re.escape(name).replace(r"\-", r"[-\s]?") for name in sorted(_KNOWN, key=len, reverse=True)
    )
    + r")(?![\w-])"
)
_NOUN = (
    r"(?:data\s?sets?|corpus|corpora|benchmarks?|test collections?|test sets?|testbeds?"
    r"|cohorts?|treebanks?)"
)
_NAME = r"(?:[A-Z][\w+/.'-]*[\w+]|[A-Z]{2,}\d*)"
_NAMED = re.compile(
    rf"\b(?P<name>{_NAME}(?:[ -](?:{_NAME}|\d[\w.]*|of|for|and)){{0,4}}) (?:[a-z]+ )?{_NOUN}\b"
)
_TITLED = re.compile(
    rf"\b(?P<name>{_NAME}(?:[ -](?:{_NAME}|of|for|and)){{0,5}} (?i:{_NOUN}|databases?|repository"
    r"|survey))\b"
)
_APPOSED = re.compile(
    rf"\b(?P<name>{_NAME}(?:[ -]{_NAME}){{0,3}})(?:,| is| are) (?:a|an|the) (?:[\w-]+"
    rf" ){{0,3}}{_NOUN}\b"
)
_CALLED = re.compile(
    rf"\b{_NOUN},? (?:called|named|known as|dubbed) [\"'\u201c]?(?P<name>{_NAME}(?:[ -](?:{_NAME}"
    rf"|\d[\w.]*)){{0,3}})"
)
_PLACE = re.compile(
    r"https?://(?:www\.)?(?:zenodo|figshare|kaggle|huggingface|dataverse|osf|github|gitlab|data"
    r"|datadryad|archive\.ics\.uci|openml|physionet)"
    r"[^\s)\]>\"']*[\w/]|\b10\.5281/zenodo\.\d+|\b(?:GSE|PRJNA|SRP|phs|EGAS)\d{4,}\b"
    r"|\bdoi:\s?10\.\d{4,9}/[^\s\])>,;]+[\w]",
    re.IGNORECASE,
)
_GENERIC = frozenset(
    "the this that these those our their its we in on for of a an all each both several many most"
    " some such new large public open"
    " training test validation evaluation benchmark data results table figure section appendix"
    " using all two three".split()
)


@dataclass(frozen=True, slots=True)
class DatasetMention:
    """A data set or place, its evidence (each number once) and first sentence."""

    name: str
    kind: str
    """`data set` or `source`."""
    numbers: tuple[int, ...]
    sentence: str


def scan(evidence: Sequence[Evidence]) -> tuple[DatasetMention, ...]:
    """Return the data sets and sources named in passages, in order."""
    found: dict[tuple[str, str], tuple[str, list[int], str]] = {}
    for item in evidence:
        text = item.hit.passage.chunk.text
        for start, end in sentence_spans(text):
            sentence = " ".join(text[start:end].split())
            for kind, name in _names(sentence):
                _, numbers, _ = found.setdefault((kind, _key(name)), (name, [], sentence))
                if item.n not in numbers:
                    numbers.append(item.n)
    return tuple(
        DatasetMention(name, kind, tuple(numbers), sentence)
        for (kind, _), (name, numbers, sentence) in found.items()
    )


def inventory(evidence: Sequence[Evidence]) -> str:
    """Return a Markdown inventory of `scan`'s findings, with sentences and marks.

    Empty for none.
    """
    findings = scan(evidence)
    blocks = []
    for kind, heading in (("data set", "### Data sets"), ("source", "### Where data can be had")):
        rows = [_row(finding) for finding in findings if finding.kind == kind][:_MAX_ROWS]
        if rows:
            blocks.append("\n".join([heading, "", *rows]))
    return "\n\n".join(blocks)


def _names(sentence: str) -> Iterable[tuple[str, str]]:
    """Yield (kind, name) of a sentence, longer names first, none inside another."""
    taken: list[tuple[int, int]] = []
    spans = [(match.span(), "source", match.group()) for match in _PLACE.finditer(sentence)]
    for pattern in (_CALLED, _NAMED, _APPOSED):
        spans += [
            (match.span("name"), "data set", match["name"]) for match in pattern.finditer(sentence)
        ]
    spans += [
        (m.span("name"), "data set", m["name"])
        for m in _TITLED.finditer(sentence)
        if m["name"].split()[-1][0].isupper()
    ]
    spans += [(match.span(), "data set", match.group()) for match in _KNOWN_NAME.finditer(sentence)]
    for (start, end), kind, raw in sorted(spans, key=lambda span: (span[0][0], -span[0][1])):
        name = raw if kind == "source" else _trimmed(raw)
        if name and not any(start < b and a < end for a, b in taken):
            taken.append((start, end))
            yield kind, name


def _trimmed(name: str) -> str:
    """Return a name without generic words at its ends; may be empty."""
    words = name.split()
    while words and words[0].lower() in _GENERIC:
        words = words[1:]
    while words and words[-1].lower() in _GENERIC | {"and", "of", "for"}:
        words = words[:-1]
    return " ".join(words) if any(char.isupper() for char in "".join(words)) else ""


def _key(name: str) -> str:
    return re.sub(r"[\W_]+", "", name).casefold()


def _row(finding: DatasetMention) -> str:
    """Return one entry; the quoted sentence loses marks of its own."""
    quote = re.sub(r"\s*\[\d[\d,;\s\u2013-]*\]", "", finding.sentence).strip().rstrip(".")
    if len(quote) > _MAX_SENTENCE_CHARS:
        quote = f"{quote[:_MAX_SENTENCE_CHARS].rsplit(maxsplit=1)[0]}\u2026"
    marks = "".join(f"[{n}]" for n in finding.numbers[:4])
    return f"- **{finding.name}**: {quote} {marks}."
