"""Define the Protocols through which packages of one layer meet.

Adapters name a vendor; fakes (tests/fakes) say how they fake. All methods are synchronous and
thread-safe. Errors are those of `app.core.errors`; nothing else leaves an adapter on purpose.
"""

from __future__ import annotations

from app.core.ports.index import BulkLedger, Catalog, LexicalIndex, PassageCodes, VectorIndex
from app.core.ports.models import Embedder, Generator, PassageEncoder, Reranker
from app.core.ports.reading import DocumentSource, PageLocator, Parser
from app.core.ports.stores import AnswerStore, ConversationStore, JobStore, ModelStore
from app.core.ports.writer import IndexWriter, VectorSink

__all__ = [
    "AnswerStore",
    "BulkLedger",
    "Catalog",
    "ConversationStore",
    "DocumentSource",
    "Embedder",
    "Generator",
    "IndexWriter",
    "JobStore",
    "LexicalIndex",
    "ModelStore",
    "PageLocator",
    "Parser",
    "PassageCodes",
    "PassageEncoder",
    "Reranker",
    "VectorIndex",
    "VectorSink",
]
