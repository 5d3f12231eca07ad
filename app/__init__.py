"""DocuMind: a local-first RAG server. The layers are drawn in docs/architecture.md."""

__version__ = "0.1.0"
