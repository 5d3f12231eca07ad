"""Use DocuMind in LlamaIndex (extra `llama-index`): a retriever."""

from __future__ import annotations

from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from app.client import METADATA, DocuMindClient


class DocuMindRetriever(BaseRetriever):  # type: ignore[misc]  # the package is no dependency
    """Returns passages of a running server, best first, with their places as metadata."""

    def __init__(
        self,
        base_url: str = "http://127.0.0.1:8001",
        api_key: str = "",
        library: str | None = None,
        limit: int = 5,
    ) -> None:
        """Name the server and where it looks; None: where the user's own documents are."""
        self._address = base_url, api_key
        self._library = library
        self._limit = limit
        super().__init__()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        with DocuMindClient(*self._address) as client:
            found = client.search(query_bundle.query_str, self._library, limit=self._limit)
        return [
            NodeWithScore(
                node=TextNode(
                    id_=f"{hit['library']}/{hit['doc_id']}/{hit['revision']}/{hit['chunk_index']}",
                    text=hit["text"],
                    metadata={name: hit[name] for name in METADATA},
                ),
                score=hit["score"],
            )
            for hit in found["hits"]
        ]
