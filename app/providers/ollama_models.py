"""List embedding models' prefixes and input limits, from their model cards."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EmbeddingTraits:
    """Prefix of a question or passage, and the longest input in tokens.

    None: the host's figure counts.
    """

    query_prefix: str = ""
    passage_prefix: str = ""
    max_tokens: int | None = None


_SEARCH = "Represent this sentence for searching relevant passages: "
_QWEN = (
    "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:"
)

_TRAITS: dict[str, EmbeddingTraits] = {
    # huggingface.co/nomic-ai/nomic-embed-text-v1.5; Ollama's file has context_length 2048
    # (ollama#7741)
    "nomic-embed-text": EmbeddingTraits("search_query: ", "search_document: ", 2048),
    "nomic-embed-text-v2-moe": EmbeddingTraits("search_query: ", "search_document: ", 512),
    # mixedbread.ai/docs/embeddings/mxbai-embed-large-v1
    "mxbai-embed-large": EmbeddingTraits(_SEARCH, max_tokens=512),
    # github.com/Snowflake-Labs/arctic-embed
    "snowflake-arctic-embed": EmbeddingTraits(_SEARCH, max_tokens=512),
    "snowflake-arctic-embed2": EmbeddingTraits("query: "),
    # huggingface.co/BAAI/bge-m3/discussions/35
    "bge-m3": EmbeddingTraits(),
    # huggingface.co/sentence-transformers/all-MiniLM-L6-v2, sentence_bert_config.json
    "all-minilm": EmbeddingTraits(max_tokens=256),
    # ai.google.dev/gemma/docs/embeddinggemma/model_card
    "embeddinggemma": EmbeddingTraits(
        "task: search result | query: ", "title: none | text: ", 2048
    ),
    # github.com/QwenLM/Qwen3-Embedding, no space after "Query:"
    "qwen3-embedding": EmbeddingTraits(_QWEN),
}


def embedding_traits(model: str) -> EmbeddingTraits:
    """Return a model's traits by base name; unknown models have none.

    The base name is `NAME` in `host/namespace/NAME:tag`.
    """
    return _TRAITS.get(model.rpartition("/")[2].partition(":")[0].lower(), EmbeddingTraits())
