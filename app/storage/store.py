"""Open storage: the catalog, its projections, and all that works on them.

Made and closed in the right order.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Literal, Self

from app.core.errors import IndexDamaged, InvalidInput, StorageError
from app.core.trace import counted
from app.core.types import Fingerprint, Library
from app.storage.catalog.answers import AnswerStore, ConversationStore, ShareStore
from app.storage.catalog.documents import Catalog
from app.storage.catalog.folders import SyncClaims
from app.storage.catalog.keys import KeyStore
from app.storage.catalog.labels import LabelStore
from app.storage.catalog.ledger import BulkLedger
from app.storage.catalog.loader import CatalogLoader
from app.storage.catalog.models import CalibrationRows, ModelStore
from app.storage.catalog.passage_codes import PassageCodeStore
from app.storage.catalog.sqlite import SqliteDatabase
from app.storage.catalog.uploads import Unlinks
from app.storage.catalog.vectors import delete_unusable, unusable_vectors
from app.storage.files.durable import Steps, delete_retired
from app.storage.maintenance.backup import NO_BACKUP, BackupReport, backup
from app.storage.maintenance.bundle import Bundler
from app.storage.maintenance.fsck import Fsck
from app.storage.maintenance.parts import Parts
from app.storage.maintenance.purge import Purger
from app.storage.maintenance.reembedding import Reembedding
from app.storage.maintenance.start import (
    is_small,
    note_change,
    open_catalog,
    refuse_foreign_catalog,
)
from app.storage.opening import (
    Copies,
    delete_unused,
    open_engine,
    open_log,
    open_originals,
    open_stores,
)
from app.storage.options import IndexOptions
from app.storage.projector import Projector
from app.storage.queue import JobQueue
from app.storage.vectors.library import DenseLibrary, DenseVectorIndex
from app.storage.vectors.supervisor import StoreSupervisor
from app.storage.words.port import LibraryWords
from app.storage.writer import CatalogIndexWriter

log = logging.getLogger(__name__)

VectorStoreUse = Literal["background", "foreground", "off"]
_FOLLOWS: dict[VectorStoreUse, bool | None] = {"background": False, "foreground": True, "off": None}


class IndexStore:
    """Everything the index offers; a context manager.

    The caller holds the directory's lock (app.storage.files.lock).
    """

    def __init__(
        self,
        options: IndexOptions,
        *,
        crash_at: int | None = None,
        vector_store: VectorStoreUse = "background",
        heal: bool = True,
        steps: Steps | None = None,
    ) -> None:
        """Open the data directory, creating what is not there.

        Args:
            options: Where data lives and how projections are tuned.
            crash_at: End the process at this write step, for crash tests.
            vector_store: Bring the vector stores up while serving (a server), before returning
                (`foreground`), or not at all (`off`, for commands that only read; what they write
                reaches the stores later).
            steps: Told of every write; by default one made here.
            heal: Finish what the last process left undone and mend what start-up finds; False for a
                check that is to see it.

        Raises:
            IndexDamaged: The catalog is damaged or belongs to other data; the message names the
                cure.
            StorageError: The catalog was written by a newer release.
            DiskFull: No space.
            ExtraMissing: The extra of a vector store is not installed.
            InvalidInput: The search engine does not answer.
        """
        self.options = options
        self.steps = steps or Steps(crash_at)
        with ExitStack() as opened:
            self._open(opened, vector_store, heal=heal)
            opened.pop_all()

    def _open(self, opened: ExitStack, vector_store: VectorStoreUse, *, heal: bool) -> None:
        """Open everything; `opened` closes what was opened where the rest fails."""
        options = self.options
        self._engine = open_engine(options)
        if self._engine is not None:
            opened.callback(self._engine.close)
        self.vector_stores = open_stores(options, self._engine, self.steps)
        if heal:
            refuse_foreign_catalog(options.data_dir, options.database_url)
            delete_retired(options.data_dir, self.steps)
        options.data_dir.mkdir(parents=True, exist_ok=True)
        self.database = open_catalog(options, self.steps, heal=heal)
        opened.callback(self.database.close)
        self._log = open_log(self.database, shared=options.shared)
        self.loader = CatalogLoader(self.database, self._log)
        self.originals = open_originals(options, self.steps)
        self.unlinks = Unlinks(self.database, self.originals, shared=options.shared)
        self.originals.before_keeping = self.unlinks.expect
        if heal:
            self.loader.on_unusable = partial(delete_unusable, self.database)
            if is_small(self.database):
                delete_unusable(self.database, unusable_vectors(self.database))
        wanted = threading.Event()
        self.dense = {
            library: DenseLibrary(
                library, options, self.loader, store, wanted, follows=_FOLLOWS[vector_store]
            )
            for library, store in self.vector_stores.items()
        }
        self.projector = Projector(
            options, self.steps, self.loader, self.dense, self._engine, heal=heal
        )
        if options.shared:
            opened.callback(self.projector.close)
        self.catalog = Catalog(self.database, self._log, self.originals)
        self.builds = self.loader.builds
        self.writer = CatalogIndexWriter(
            self.database, self.catalog, self.projector, self.originals, self.builds
        )
        self.lexical = LibraryWords(self.projector.indexes, self.loader)
        self.vectors = DenseVectorIndex(self.dense)
        self.codes = PassageCodeStore(self.database, self.catalog)
        self.jobs = JobQueue(self.database)
        self.ledger = BulkLedger(self.database)
        self.claims = SyncClaims(self.database)
        self.labels = LabelStore(self.database)
        self.keys = KeyStore(self.database)
        self.answers = AnswerStore(self.database)
        self.shares = ShareStore(self.database)
        self.calibrations = CalibrationRows(self.database)
        self.conversations = ConversationStore(self.database)
        self.models = ModelStore(self.database)
        self.supervisor = StoreSupervisor(
            self.loader,
            self.dense,
            wanted,
            lambda: delete_unused(options, self.vector_stores, self.steps),
            self.projector.apply,
            self.projector.look,
            self.projector.maintain,
            shared=bool(options.database_url),
        )
        names = [part.name for part in fields(Parts)]
        parts = {name: getattr(self, name) for name in names}
        self.fsck = Fsck(**parts, heals=heal)
        self.purger = Purger(**parts)
        self.reembedding = Reembedding(**parts)
        self.bundler = Bundler(**parts)
        self.calls = counted(self.database, self._engine, self.originals)
        self._heals = heal
        if heal:
            self.codes.delete_others()
            self.writer.purge_due()
            self.unlinks.unlink_at_start()
            for library in Library:
                self.projector.start(library)
            note_change(options.data_dir, self._log.last(), self.steps)
        if vector_store == "background":
            self.supervisor.start()
        elif vector_store == "foreground":
            self.supervisor.initialise()

    def made_with(self, library: Library) -> Fingerprint | None:
        """Return a library's fingerprint; None while it has no vectors."""
        live = self.builds.of(library, "live")
        return live.fingerprint if live and self.catalog.counts(library).embedded else None

    def rebuild(self) -> None:
        """Rebuild every projection from the catalog; needs exclusive use.

        Raises:
            DiskFull: No space; run it again.
        """
        for library in Library:
            with self.database.lock_of(f"words of {library.value}"):
                self.projector.words[library].rebuild(self.catalog.counts(library).documents)
            self.dense[library].refill_cache()
        self.supervisor.refill("asked to rebuild")

    def copies(self) -> Sequence[Copies]:
        """Return how a search engine keeps each collection; nothing without one that answers."""
        try:
            return () if self._engine is None else self._engine.copies()
        except StorageError:
            return ()

    def missing(self) -> tuple[str, ...]:
        """Return what was deleted, cut, renamed or replaced under the server.

        `catalog`, `lexical index of ...`; or which engine is away: `database ...`,
        `search engine ...`.
        """
        return (
            *self.database.missing(),
            *(
                f"lexical index of {library.value}"
                for library, index in self.projector.indexes.items()
                if index.lost()
            ),
            *(() if self._engine is None else self._engine.away()),
        )

    def degraded(self) -> tuple[str, ...]:
        """Return what is not as it should be though questions are answered; nothing is missing."""
        states = {library: self.projector.state(library) for library in Library}
        nodes = self._engine.silent() if self._engine else ()
        return (
            *self.database.degraded(),
            *(f"{away} does not answer" for away in (*nodes, *self.originals.away())),
            *(
                f"words or vectors of {library.value} are {state}"
                for library, state in states.items()
                if state.state != "ready"
            ),
        )

    def backup(
        self, target: Path, progress: Callable[[int, int], None] | None = None
    ) -> BackupReport:
        """Write a backup of catalog and originals into `target` while serving.

        Raises:
            InvalidInput: The catalog is in PostgreSQL, which has tools of its own.
        """
        if not isinstance(self.database, SqliteDatabase):
            raise InvalidInput(NO_BACKUP)
        return backup(self.database, self.originals, target, self.steps, progress=progress)

    def close(self) -> None:
        """Write the watermarks and let everything go."""
        self.supervisor.stop()
        if self._heals and self.options.shared:
            with suppress(StorageError):  # the next look of any process does it
                self.projector.keep_epochs()
        try:
            with suppress(StorageError):  # when a key was used is not worth a failed stop
                self.keys.flush()
            self.projector.close()
            for dense in self.dense.values():
                with suppress(StorageError):  # the next start applies it again
                    dense.replica.flush()
            with suppress(IndexDamaged):  # the next start finds it and says what to do
                self._log.save()
            if self._heals:
                with suppress(IndexDamaged, FileNotFoundError):  # or the directory was renamed
                    note_change(self.options.data_dir, self._log.last(), self.steps)
        finally:
            for vectors in set(self.vector_stores.values()):
                vectors.close()
            for index in self.projector.indexes.values():
                index.close()
            self.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
