"""Identities: documents, content, fingerprints."""

from __future__ import annotations

import hashlib
import json
import uuid
from dataclasses import asdict
from pathlib import Path

from app.core.types import Fingerprint, Library


def document_id(library: Library, source_key: str) -> str:
    """Return the 16 hex digits that name a source in a library, in all revisions."""
    return hashlib.sha256(
        f"{library.value}\0{source_key}".encode("utf-8", "surrogatepass")
    ).hexdigest()[:16]


def content_sha256(content: bytes | Path) -> str:
    """Return the SHA-256 of bytes or a file as 64 hex digits.

    Files are read in blocks of 1 MiB.
    """
    if isinstance(content, bytes):
        return hashlib.sha256(content).hexdigest()
    with content.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fingerprint8(fingerprint: Fingerprint) -> str:
    """Return 8 hex digits that differ when any part of the fingerprint does."""
    canonical = json.dumps(asdict(fingerprint), sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(canonical.encode()).hexdigest()[:8]


def new_id() -> str:
    """Return a random id of 32 hex digits (jobs, answers, conversations, requests)."""
    return uuid.uuid4().hex


def embedder_key(fingerprint: Fingerprint) -> str:
    """Return 16 hex digits that name an embedder.

    Libraries with equal keys have comparable similarities.
    """
    made = (fingerprint.embedding_model, fingerprint.model_digest, str(fingerprint.dimension))
    prefixes = (fingerprint.query_prefix, fingerprint.passage_prefix)
    return hashlib.sha256("\0".join((*made, *prefixes)).encode()).hexdigest()[:16]
