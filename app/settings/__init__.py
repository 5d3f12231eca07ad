"""The configuration, and the options that each part takes of it.

`variables` reads the environment, here its values become the frozen options of the layers below,
and `checks` looks at the whole at start.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from app.answer.manner import MannerOptions
from app.answer.options import AnswerOptions
from app.core.errors import InvalidInput
from app.core.types import EmbeddedModel, Library
from app.generation.options import GenerationOptions
from app.index.options import IndexOptions
from app.ingest.options import IngestOptions
from app.jobs.options import LANES, JobOptions
from app.providers.options import HostedOptions, ProviderOptions
from app.retrieval.options import RetrievalOptions
from app.settings.variables import HOSTED, Variables


class Settings(Variables):
    """All configuration, from the environment and `.env` in the working directory."""

    @property
    def library(self) -> Library:
        """The library of a request that needs one and names none."""
        return Library.PUBLIC if self.default_library == "auto" else Library(self.default_library)

    @property
    def is_shared(self) -> bool:
        """Return whether other processes may use the same data."""
        return bool(self.database_url and self.search_url)

    @property
    def chroma_dir(self) -> Path:
        """Return the directory of Chroma's store."""
        return self.chroma_persist_dir or self.data_dir / "chroma"

    @property
    def embedded_models(self) -> Mapping[Library, EmbeddedModel]:
        """What embeds each library where no host does."""
        return {
            Library.PUBLIC: self.public_embedded_model or self.embedded_model,
            Library.PAPERS: self.papers_embedded_model or self.embedded_model,
        }

    def ingest(self) -> IngestOptions:
        """Return the options of ingest."""
        return IngestOptions(
            chunk_size=self.chunk_size,
            chunk_overlap=self.chunk_overlap,
            max_file_bytes=self.max_file_size_mb * 1024 * 1024,
            late_interaction_max_chunks=self.late_interaction_max_chunks,
        )

    def index(self) -> IndexOptions:
        """Return the options of storage.

        Raises:
            InvalidInput: A search engine is named, but no database that goes with it.
        """
        if self.search_url and not self.database_url:
            raise InvalidInput(
                "SEARCH_URL needs DATABASE_URL: an engine serves a catalog in PostgreSQL"
            )
        return IndexOptions(
            data_dir=self.data_dir,
            chroma_dir=self.chroma_dir,
            originals_url=self.originals_url,
            originals_cache_bytes=self.originals_cache_mb * 1024 * 1024,
            database_url=self.database_url,
            search_url=self.search_url,
            search_api_key=self.search_api_key,
            search_replicas=self.search_replicas,
            max_file_bytes=self.max_file_size_mb * 1024 * 1024,
            collection_papers=self.chroma_collection_name,
            collection_public=self.chroma_collection_public,
            # The engine answers: no rows in memory that other servers would have to follow.
            vector_cache_vectors=0 if self.search_url else self.vector_cache_vectors,
            papers_store=self.papers_vector_store or self.vector_store,
            public_store=self.public_vector_store or self.vector_store,
            max_dense_vectors=self.max_dense_vectors,
            dense_memory_bytes=0 if self.max_dense_vectors else max(1, _memory_bytes() // 4),
        )

    def retrieval(self) -> RetrievalOptions:
        """Return the options of retrieval."""
        return RetrievalOptions(
            top_k=self.top_k_results,
            fusion=self.fusion,
            rerank=self.rerank,
            relevance_threshold=self.relevance_threshold,
            public_relevance_threshold=self.public_relevance_threshold,
            keyword_rerank_weight=self.keyword_rerank_weight,
            public_keyword_rerank_weight=self.public_keyword_rerank_weight,
            enable_fallback=self.enable_fallback_retrieval,
            fallback_top_n=self.fallback_top_n,
            embed_on_query_budget_ms=self.embed_on_query_budget_ms,
        )

    def generation(self) -> GenerationOptions:
        """Return the options of generation."""
        return GenerationOptions(
            prompts_dir=self.prompts_dir,
            max_tokens=self.llm_max_tokens,
            temperature=self.llm_temperature,
            reasoning=self.reasoning,
            grounding_min_similarity=self.grounding_min_similarity,
            explicit=tuple(
                name
                for name in ("temperature", "max_tokens")
                if f"llm_{name}" in self.model_fields_set
            ),
        )

    def providers(self) -> ProviderOptions:
        """Return the options of model hosts."""
        hosted = {
            name: HostedOptions(
                api_key=getattr(self, f"{name}_api_key"), model=getattr(self, f"{name}_model")
            )
            for name in HOSTED
        }
        hosted["openai"] = HostedOptions(
            self.openai_base_url, self.openai_api_key, self.openai_model
        )
        hosted["openai_compatible"] = hosted["openai"]
        return ProviderOptions(
            llm_provider=self.llm_provider,
            llm_model=self.llm_model,
            helper_model=self.helper_model,
            embedding_provider=self.embedding_provider,
            embedding_model=self.embedding_model,
            embedded_model=self.embedded_models,
            ollama_base_url=self.ollama_base_url.rstrip("/"),
            ollama_timeout_s=self.ollama_request_timeout_sec,
            query_embed_timeout_s=self.query_embed_timeout_s,
            ollama_keep_alive=self.ollama_keep_alive,
            num_ctx=self.llm_num_ctx,
            max_model_calls=self.max_model_calls,
            memory_bytes=_memory_bytes(),
            hosted=hosted,
            cross_encoder_dir=self.cross_encoder_dir,
            model_cache_dir=self.data_dir / "models",
            arxiv_base_url=self.arxiv_base_url.rstrip("/"),
        )

    def answer(self) -> AnswerOptions:
        """Return the options of the query use case."""
        return AnswerOptions(
            flare_active_retrieval=self.flare_active_retrieval,
            flare_draft_max_context_chars=self.flare_draft_max_context_chars,
            memory_strategy=self.memory_strategy,
            memory_buffer_size=self.memory_buffer_size,
            memory_token_budget=self.memory_token_budget,
            refusal_language=self.refusal_language,
            store_answers=self.store_answers,
            answer_retention_days=self.answer_retention_days,
            manner=MannerOptions(self.model_prompts, self.evidence, self.first_token_target_s),
        )

    def jobs(self) -> JobOptions:
        """Return the options of the job runner.

        Raises:
            InvalidInput: A server that is alone would leave jobs undone.
        """
        if not self.is_shared and set(self.job_lanes) != set(LANES):
            raise InvalidInput(
                "JOB_LANES leaves jobs undone: only with DATABASE_URL and SEARCH_URL can another"
                " process do them"
            )
        return JobOptions(lanes=self.job_lanes)


def _memory_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
