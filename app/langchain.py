"""Use DocuMind in LangChain (extra `langchain`): a retriever, and the chunker as a splitter."""

from __future__ import annotations

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_text_splitters import TextSplitter

from app.client import METADATA, DocuMindClient
from app.core.types import ParsedDocument
from app.ingest.chunking import chunk
from app.ingest.options import IngestOptions


class DocuMindRetriever(BaseRetriever):
    """Returns passages of a running server, best first, with their places as metadata."""

    base_url: str = "http://127.0.0.1:8001"
    api_key: str = ""
    library: str | None = None
    """`public`, `papers` or `all`; None: where the user's own documents are."""
    limit: int = 5

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,  # noqa: ARG002  # there is nothing to report
    ) -> list[Document]:
        with DocuMindClient(self.base_url, self.api_key) as client:
            hits = client.search(query, self.library, limit=self.limit)["hits"]
        return [
            Document(page_content=hit["text"], metadata={name: hit[name] for name in METADATA})
            for hit in hits
        ]


class DocuMindTextSplitter(TextSplitter):  # type: ignore[misc]  # its package is not followed
    """Cuts plain text as the server does: at paragraphs, lines, sentences, words."""

    def __init__(self, chunk_size: int = 1000, chunk_overlap: int = 150) -> None:
        """Bound chunks and what neighbours share, in characters."""
        super().__init__(chunk_size=chunk_size, chunk_overlap=chunk_overlap)
        self._options = IngestOptions(chunk_size=chunk_size, chunk_overlap=chunk_overlap)

    def split_text(self, text: str) -> list[str]:
        """Return the chunks of a text in order; each is characters of it."""
        spans = chunk(ParsedDocument(text, "text/plain"), self._options)
        return [text[span.start : span.end] for span in spans]
