"""Any sequence of writes, deletions, restorations, rebuilds, re-embeddings and restarts, against a dictionary."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from app.core.types import Library
from app.ingest.embedding import VectorBackfill
from app.ingest.options import IngestOptions
from app.storage.options import IndexOptions
from app.storage.store import IndexStore
from tests.fakes.embedders import HashEmbedder
from tests.unit.storage.drafts import make_draft
from tests.unit.storage.maintenance.test_reembedding import made_by

PAPERS = Library.PAPERS
SHORT = 20
EXAMPLES = int(os.environ.get("DOCUMIND_MACHINE_EXAMPLES", str(SHORT)))
"""Sequences tried; the short form tries the same ones every time."""
KEYS = st.sampled_from(["ant", "bee", "cat", "dog", "eel"])
EMBEDDERS = (
    HashEmbedder(16, model="one"),
    HashEmbedder(16, model="two"),
    HashEmbedder(24, model="three"),
)


class StoreMachine(RuleBasedStateMachine):
    """The model is `live` (key to text), `hidden` (deleted within grace) and `embedded` (keys whose chunks all have a vector)."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="documind-machine-"))
        self.live: dict[str, str] = {}
        self.hidden: dict[str, str] = {}
        self.embedded: set[str] = set()
        self.gone: set[str] = set()
        """Words of texts that were replaced or deleted."""
        self.embedder = EMBEDDERS[0]
        self.claimed = False
        self.n = 0
        self.store = self._open()

    def _open(self) -> IndexStore:
        data = self.folder / "data"
        options = IndexOptions(
            data, data / "chroma", tantivy_threads=1, tantivy_heap_bytes=15_000_000
        )
        return IndexStore(options, vector_store="off")

    def teardown(self) -> None:
        faults = self.store.fsck.run().faults
        self.store.close()
        shutil.rmtree(self.folder)
        assert faults == ()

    def _doc_id(self, key: str) -> str:
        return make_draft(key, "any").doc_id

    def _forget(self, key: str) -> None:
        self.gone.add(self.live.pop(key).split()[0])
        self.embedded.discard(key)

    @rule(key=KEYS, chunks=st.integers(1, 4))
    def write(self, key: str, chunks: int) -> None:
        """Add a document, or replace the live one, or bring back a deleted one with another text."""
        self.n += 1
        text = f"word{key}{self.n} " + " ".join(f"part{key}{self.n}x{i}" for i in range(3 * chunks))
        self.store.writer.write([make_draft(key, text, chunks=chunks)])
        if key in self.live:
            self._forget(key)
        if key in self.hidden:
            self.gone.add(self.hidden.pop(key).split()[0])
        self.live[key] = text

    @rule(key=KEYS)
    def write_the_same_again(self, key: str) -> None:
        """Nothing changes."""
        if key in self.live:
            draft = make_draft(key, self.live[key], chunks=1)
            assert self.store.writer.write([draft])[0].status == "unchanged"

    @precondition(lambda self: self.live)
    @rule(data=st.data(), grace=st.sampled_from([0.0, 3600.0]))
    def delete(self, data: st.DataObject, grace: float) -> None:
        """Delete for good or with a grace."""
        key = data.draw(st.sampled_from(sorted(self.live)))
        self.store.writer.delete(PAPERS, self._doc_id(key), grace)
        text, embedded = self.live[key], key in self.embedded
        self._forget(key)
        if grace:
            self.gone.discard(text.split()[0])
            self.hidden[key] = text
            if embedded:
                self.embedded.add(f"hidden {key}")

    @precondition(lambda self: self.hidden)
    @rule(data=st.data())
    def restore(self, data: st.DataObject) -> None:
        """Undo a deletion."""
        key = data.draw(st.sampled_from(sorted(self.hidden)))
        self.store.writer.restore(PAPERS, self._doc_id(key))
        self.live[key] = self.hidden.pop(key)

    @rule()
    def clear(self) -> None:
        """Delete everything that is live."""
        self.store.writer.delete_all(PAPERS)
        for key in list(self.live):
            self._forget(key)

    @rule()
    def embed(self) -> None:
        """Give every live chunk its vector."""
        self.store.writer.claim(PAPERS, made_by(self.embedder))
        VectorBackfill(self.store.writer, self.embedder, IngestOptions(embed_batch=3)).run(PAPERS)
        self.store.writer.apply(PAPERS)
        self.embedded = set(self.live)
        self.claimed = True

    @precondition(lambda self: self.claimed)
    @rule(embedder=st.sampled_from(EMBEDDERS))
    def embed_anew(self, embedder: HashEmbedder) -> None:
        """Swap to another model."""
        live = self.store.builds.of(PAPERS, "live")
        assert live is not None
        if live.fingerprint == made_by(embedder):
            return
        staged = self.store.reembedding.begin(PAPERS, made_by(embedder))
        VectorBackfill(
            self.store.writer, embedder, IngestOptions(embed_batch=3), build=staged.number
        ).run(PAPERS)
        with self.store.reembedding.beside(PAPERS, staged.number, threading.Event()):
            self.store.reembedding.swap(PAPERS, staged.number)
        self.embedder = embedder
        self.embedded = set(self.live)

    @rule()
    def rebuild_lexical(self) -> None:
        """Make the lexical index anew."""
        self.store.projector.words[PAPERS].rebuild(len(self.live))

    @rule()
    def refill_cache(self) -> None:
        """Read the cache again."""
        for dense in self.store.dense.values():
            dense.refill_cache()

    @rule()
    def purge(self) -> None:
        """Make deletions physical."""
        self.store.purger.run()

    @rule()
    def reopen(self) -> None:
        """End and start."""
        self.store.close()
        self.store = self._open()

    @invariant()
    def lists_and_counts_agree(self) -> None:
        """The catalog shows what the model holds."""
        documents, _ = self.store.catalog.documents(PAPERS, limit=100)
        assert {document.source_key for document in documents} == set(self.live)
        for document in documents:
            assert (
                self.store.catalog.text(PAPERS, document.doc_id).text
                == self.live[document.source_key]
            )
        counts = self.store.catalog.counts(PAPERS)
        assert (counts.documents, counts.chunks) == (
            len(documents),
            sum(document.chunks for document in documents),
        )
        assert counts.embedded == sum(document.embedded for document in documents)

    @invariant()
    def words_find_what_is_live_and_nothing_else(self) -> None:
        """Each text by its own word; no word of a text that is gone."""
        for key, text in self.live.items():
            hits = self.store.lexical.search(PAPERS, text.split()[0], 10)
            passages = self.store.catalog.passages(PAPERS, [hit.chunk_id for hit in hits])
            assert [passage.document.source_key for passage in passages.values()] == [key]
        for word in [*self.gone, *(text.split()[0] for text in self.hidden.values())]:
            assert self.store.lexical.search(PAPERS, word, 10) == []

    @invariant()
    def vectors_find_what_is_embedded_and_nothing_else(self) -> None:
        """Each embedded chunk is the nearest to itself; as many can be found as there are."""
        counts = self.store.catalog.counts(PAPERS)
        assert self.store.vectors.count(PAPERS) == counts.embedded
        for key in self.embedded & set(self.live):
            for chunk in self.store.catalog.chunks(PAPERS, self._doc_id(key)):
                hits = self.store.vectors.search(PAPERS, self.embedder.embed_query(chunk.text), 20)
                assert chunk.chunk_id in [
                    hit.chunk_id for hit in hits if hit.score <= hits[0].score + 1e-4
                ]
        if counts.embedded:
            found = self.store.vectors.search(PAPERS, self.embedder.embed_query("anything"), 100)
            ids = [hit.chunk_id for hit in found]
            assert len(ids) == len(set(ids)) == counts.embedded
            assert set(self.store.catalog.passages(PAPERS, ids)) == set(ids)


StoreMachine.TestCase.settings = settings(
    max_examples=EXAMPLES,
    stateful_step_count=20,
    suppress_health_check=list(HealthCheck),
    derandomize=EXAMPLES == SHORT,
)
TestStore = StoreMachine.TestCase
