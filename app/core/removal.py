"""Describe what a deletion removes and what it cannot remove."""

from __future__ import annotations

OUT_OF_REACH = (
    "exports and backups made before",
    "copies of the data directory, and snapshots of the file system or the disk",
    "what a hosted provider was sent, where one was used",
    "names of files in the list of finished jobs, until those are forgotten",
)
"""What a purge cannot change; shown with every deletion and purge."""
