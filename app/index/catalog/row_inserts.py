"""Name the columns that a batch of documents writes, for `SqlDialect.insert_rows`."""

from __future__ import annotations

Row = tuple[object, ...]
"""The values of one row, in the order of the columns."""

_DOCUMENT = (
    "doc library doc_id source_key revision state filename type sha256 title authors author_keys"
    " year arxiv_id source_url"
    " licence flags has_original characters pages bytes chunks embedded source_revision corrected"
    " links search_key added_at"
    " updated_at language"
).split()
_KEPT = {"doc", "library", "doc_id", "source_key", "corrected", "links", "added_at"}
INSERT_DOCUMENT = f"INSERT INTO documents ({', '.join(_DOCUMENT)})"
REPLACING = "ON CONFLICT (doc) DO UPDATE SET purge_at = NULL, " + ", ".join(
    f"{column} = excluded.{column}" for column in _DOCUMENT if column not in _KEPT
)
"""Follows INSERT_DOCUMENT: another revision of a document that is there."""
INSERT_REVISION = (
    "INSERT INTO revisions (doc, revision, sha256, source_revision, has_original,"
    " characters, pages, text, created_at)"
)
INSERT_CHUNK = 'INSERT INTO chunks (chunk_id, doc, revision, ordinal, start, "end", section, page)'
INSERT_CHANGE = "INSERT INTO changes (library, kind, doc, revision, ids)"
