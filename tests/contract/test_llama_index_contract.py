"""What LlamaIndex expects of a retriever, on its own package; collected where that is installed."""

from __future__ import annotations

from pathlib import Path

from llama_index.core.retrievers import BaseRetriever

from app.llama_index import DocuMindRetriever
from tests.api.conftest import LIBRARY, listening, site


def test_a_retriever_returns_nodes_with_their_places(tmp_path: Path) -> None:
    with site(tmp_path) as opened, listening(opened.app, lifespan="off") as url:
        opened.upload(*((name, text.encode()) for name, text in LIBRARY.items()))
        retriever: BaseRetriever = DocuMindRetriever(url, library="papers", limit=2)
        found = retriever.retrieve("melting point of copper")
        assert len(found) == 2
        first = found[0]
        assert first.node.metadata["filename"] == "copper.txt"
        assert first.score == first.node.metadata["score"]
        assert "1085" in first.node.get_content()
        assert {"doc_id", "section", "chunk_index", "page", "start", "end"} <= set(
            first.node.metadata
        )
