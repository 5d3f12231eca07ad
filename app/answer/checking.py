"""Check a user's text: every sentence against the libraries or another text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain

from app.answer.references import Entry, cited_in, entries_of, look_up, without_citations
from app.answer.search import SearcherFor, libraries
from app.core.ports import Reader
from app.core.trace import Trace
from app.core.types import (
    CheckCounts,
    CheckedSentence,
    CheckReport,
    Document,
    Filters,
    Finding,
    Hit,
    Library,
    Passage,
    Reference,
    Scope,
    Verdict,
)
from app.generation.check.citations import claim_spans, plain_claim
from app.generation.check.grounding import PromptEcho
from app.generation.check.support import ClaimComparer, Comparison, Origin, verdict_of
from app.generation.language.claims import Claim, ReadPassage, read_passage
from app.retrieval.request import SearchRequest
from app.retrieval.retrievers import merge

_BATCH = 64
"""Sentences whose passages are searched together."""
_PASSAGES = 5
"""Passages that a sentence is held against, per search."""
_FINDINGS = 3
"""Most findings that are told for a sentence."""
_SEARCHES = 2
"""Searches at once."""
_LONGEST_QUERY = 1000
"""Characters of a sentence that are searched for."""


@dataclass(frozen=True, slots=True)
class Source:
    """A text that sentences are held against: a passage, or a text of no library."""

    read: ReadPassage
    of: Passage | None = None

    def finding(self, one: Comparison) -> Finding:
        """Return the place that a comparison found, by its offsets in the whole text."""
        start, end = one.alignment.start, one.alignment.end
        offset = self.of.chunk.start if self.of else 0
        quoted = offset + start, offset + end, self.read.text[start:end], round(one.score, 4)
        if self.of is None:
            return Finding(*quoted, None, None, None, None)
        chunk, document = self.of.chunk, self.of.document
        return Finding(
            *quoted, chunk.library.value, document.doc_id, document.title, chunk.revision
        )


Watch = Callable[[int, int], None]
"""Is told how many sentences are read, and of how many."""


def unwatched(done: int, of: int) -> None:
    """Tell no one."""


SourcesOf = Callable[[Sequence[Claim]], Sequence[Sequence[Source]]]
"""Returns what each claim is held against."""


class CheckService:
    """Checks texts; stateless, so it may be shared between threads."""

    def __init__(
        self,
        *,
        searcher_for: SearcherFor,
        documents: Callable[[Library], Iterable[Document]],
        reader: Reader | None,
        prompts: Iterable[str] = (),
    ) -> None:
        """Keep what checking takes.

        Args:
            searcher_for: Returns how a library is searched now.
            documents: Returns all documents of a library.
            reader: Reads sentences next to passages; without one only copies are supported.
            prompts: What models are told; a sentence that repeats it is never supported.
        """
        self._searcher_for = searcher_for
        self._documents = documents
        self._reader = reader
        self._echo = PromptEcho(prompts)

    def against(self, text: str, source: str, watch: Watch = unwatched) -> CheckReport:
        """Check a text against another text; findings have offsets and no document."""
        place = Source(ReadPassage.of_text(source))
        claims = _claims_of(text)
        verdicts = self._verdicts(
            claims, "source", lambda found: [[place]] * len(found), lambda n: watch(n, len(claims))
        )
        return _report(text, verdicts)

    def in_libraries(self, text: str, scope: Scope, watch: Watch = unwatched) -> CheckReport:
        """Check a text against the best passages for each sentence, in the scope.

        A sentence that cites a reference of the text's own list is held against the documents that
        `papers` has of it, and against the others where these neither say nor deny it.
        """
        entries = entries_of(text)
        has_papers = bool(entries) and Library.PAPERS in libraries(scope)
        references = look_up(entries, self._documents(Library.PAPERS)) if has_papers else ()
        claims = _claims_of(text, entries)
        listed = entries if references else ()
        cites = {start: cited_in(text[start:end], listed) for start, end, _ in claim_spans(text)}
        verdicts: dict[int, tuple[Verdict, list[Finding]]] = {}

        def read(n: int) -> None:
            watch(len(verdicts) + n, len(claims))

        for doc_ids, group in _by_documents(claims, cites, references).items():
            found = self._verdicts(group, "search", self._library_sources("papers", doc_ids), read)
            verdicts |= {at: one for at, one in found.items() if one[0] in _DECIDED}
        others = {start: claim for start, claim in claims.items() if start not in verdicts}
        verdicts |= self._verdicts(others, "search", self._library_sources(scope), read)
        return replace(_report(text, verdicts, cites), references=references)

    def _library_sources(self, scope: Scope, doc_ids: tuple[str, ...] = ()) -> SourcesOf:
        """Return what finds the passages for claims; each passage is read once."""
        known: dict[tuple[Library, int], Source] = {}
        search = partial(self._search, scope=scope, filters=Filters(doc_ids=doc_ids))

        def sources(claims: Sequence[Claim]) -> list[list[Source]]:
            with ThreadPoolExecutor(_SEARCHES) as pool:
                found = pool.map(search, claims)
            passages = [[hit.passage for hit in hits] for hits in found]
            for one in chain.from_iterable(passages):
                if one.chunk.key not in known:
                    known[one.chunk.key] = Source(read_passage(one), one)
            return [[known[one.chunk.key] for one in hits] for hits in passages]

        return sources

    def with_better(self, report: CheckReport, scope: Scope) -> CheckReport:
        """Return a report where sentences without support name a place that supports them."""
        open_ = [
            one
            for one in report.sentences
            if one.verdict in ("unsure", "contradicted", "not_found")
        ]
        claims = {one.start: Claim(plain_claim(one.text)) for one in open_}
        found = self._verdicts(claims, "search", self._library_sources(scope))
        better = {
            start: findings[0]
            for start, (verdict, findings) in found.items()
            if verdict == "supported"
        }
        return replace(
            report,
            sentences=tuple(replace(one, better=better.get(one.start)) for one in report.sentences),
        )

    def _search(self, claim: Claim, scope: Scope, filters: Filters) -> Sequence[Hit]:
        asked = claim.text[:_LONGEST_QUERY]
        found = {}
        for library in libraries(scope):
            request = SearchRequest(
                asked, library, top_k=_PASSAGES, filters=filters, keep_weak=True
            )
            found[library] = self._searcher_for(library).retriever.retrieve(request, Trace())
        return merge(found, _PASSAGES).hits

    def _verdicts(
        self,
        claims: Mapping[int, Claim],
        against: Origin,
        sources_of: SourcesOf,
        read: Callable[[int], None] = lambda _: None,
    ) -> dict[int, tuple[Verdict, list[Finding]]]:
        """Return verdict and findings of each claim, by where it begins.

        `read` is told after each how many are done.
        """
        verdicts: dict[int, tuple[Verdict, list[Finding]]] = {}
        starts = list(claims)
        for batch in (starts[at : at + _BATCH] for at in range(0, len(starts), _BATCH)):
            sources = sources_of([claims[start] for start in batch])
            distinct = {id(one.read): one.read for found in sources for one in found}
            comparer = ClaimComparer(distinct.values(), self._reader, against)
            for start, held_against in zip(batch, sources, strict=True):
                claim = claims[start]
                read(len(verdicts))
                if self._echo.repeats(claim):
                    verdicts[start] = "not_found", []
                    continue
                compared = comparer.compare(claim, [one.read for one in held_against])
                verdict, deciding = verdict_of(compared.values())
                found = [(one, held_against[at]) for at, one in compared.items()]
                found.sort(key=lambda pair: (pair[0] is not deciding, -pair[0].score))
                findings = [source.finding(one) for one, source in found[:_FINDINGS]]
                verdicts[start] = verdict, findings
        return verdicts


_DECIDED = ("supported", "contradicted")
Cited = Mapping[int, Sequence[int]]
"""Places of the references that a sentence cites, by where it begins."""


def _claims_of(text: str, entries: Sequence[Entry] = ()) -> dict[int, Claim]:
    """Return the sentences that claim something, by where they begin; an entry does not."""
    listed = [range(one.start, one.end) for one in entries]
    return {
        start: Claim(plain_claim(without_citations(text[start:end], entries)))
        for start, end, says in claim_spans(text)
        if says and not any(start in one for one in listed)
    }


def _by_documents(
    claims: Mapping[int, Claim], cites: Cited, references: Sequence[Reference]
) -> dict[tuple[str, ...], dict[int, Claim]]:
    """Return the claims that cite documents of the library, by these."""
    groups: dict[tuple[str, ...], dict[int, Claim]] = {}
    for start, claim in claims.items():
        found = [references[at].doc_id for at in cites[start]]
        if doc_ids := tuple(sorted({doc_id for doc_id in found if doc_id is not None})):
            groups.setdefault(doc_ids, {})[start] = claim
    return groups


def _report(
    text: str, verdicts: Mapping[int, tuple[Verdict, list[Finding]]], cites: Cited | None = None
) -> CheckReport:
    nothing: tuple[Verdict, list[Finding]] = ("no_claim", [])
    sentences = []
    for start, end, _ in claim_spans(text):
        verdict, findings = verdicts.get(start, nothing)
        support = findings[0].support if findings else 0.0
        told = text[start:end], start, end, verdict, support, tuple(findings), None, verdict, None
        sentences.append(CheckedSentence(*told, tuple((cites or {}).get(start, ()))))
    counts = CheckCounts.of(one.verdict for one in sentences)
    return CheckReport(tuple(sentences), counts, "reader", None, None, ())
