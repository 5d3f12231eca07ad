"""What LangChain expects of a retriever and a splitter, on its own packages."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda

from app.langchain import DocuMindRetriever, DocuMindTextSplitter
from tests.api.conftest import LIBRARY, Site, listening, site


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Site, str]]:
    with site(tmp_path_factory.mktemp("langchain"), api_key="k3y") as opened:
        opened.client.headers["X-API-Key"] = "k3y"
        status, _ = opened.upload(*((name, text.encode()) for name, text in LIBRARY.items()))
        assert status == 201
        with listening(opened.app, lifespan="off") as url:
            yield opened, url


def test_a_retriever_returns_passages_with_their_places(served: tuple[Site, str]) -> None:
    opened, url = served
    retriever = DocuMindRetriever(base_url=url, api_key="k3y", library="papers", limit=2)
    chain = retriever | RunnableLambda(lambda found: found)
    found = chain.invoke("melting point of copper")
    assert len(found) == 2
    assert all(isinstance(one, Document) for one in found)
    where = found[0].metadata
    assert (where["filename"], where["library"], where["chunk_index"]) == (
        "copper.txt",
        "papers",
        0,
    )
    span = {name: where[name] for name in ("library", "start", "end")}
    text = opened.client.get(f"/api/v1/documents/{where['doc_id']}/text", params=span).json()
    assert text["text"] == found[0].page_content
    assert {"section", "page", "title", "score"} <= set(where)


def test_a_splitter_cuts_as_the_server_does() -> None:
    text = "\n\n".join(f"Paragraph {n} says a thing of its own. It has two." for n in range(40))
    splitter = DocuMindTextSplitter(chunk_size=200, chunk_overlap=40)
    made = splitter.create_documents([text])
    assert [one.page_content for one in made] == splitter.split_text(text)
    assert all(0 < len(one.page_content) <= 200 for one in made)
    assert all(one.page_content in text for one in made)
    assert len(made) >= 10
