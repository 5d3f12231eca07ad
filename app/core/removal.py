"""Describe what a deletion removes and what it cannot remove."""

from __future__ import annotations

OUT_OF_REACH = (
    "exports and backups made before",
    "copies of the data directory, and snapshots of the file system or the disk",
    "where DATABASE_URL is set: PostgreSQL's write-ahead log until it is recycled, and its dumps"
    " and standbys",
    "what a hosted provider was sent, where one was used",
    "names of files in the list of finished jobs, until those are forgotten",
)
"""What a purge cannot change; shown with every deletion and purge."""
