"""Tables as lines that stay readable when a chunk holds only some of them."""

from __future__ import annotations

from collections.abc import Sequence

_MAX_LABEL_CHARACTERS = 60


def table_lines(rows: Sequence[Sequence[str]], *, header: bool | None = None) -> list[str]:
    """Return one line a row; cells carry their column's label below a header row.

    `Year: 1911 | Place: Leiden`.

    Args:
        rows: Cell texts, row by row; blank rows are dropped.
        header: Whether the first row names the columns; None decides by its look.
    """
    filled = [
        [" ".join(cell.split()) for cell in row]
        for row in rows
        if any(cell.strip() for cell in row)
    ]
    if not filled:
        return []
    labels = filled[0]
    if header is None:
        header = _looks_like_labels(labels)
    if not header or len(filled) < 2 or len(labels) < 2:
        return [" | ".join(cell for cell in row if cell) for row in filled]
    return [
        " | ".join(label for label in labels if label),
        *(_labelled(row, labels) for row in filled[1:]),
    ]


def _looks_like_labels(cells: Sequence[str]) -> bool:
    named = [cell for cell in cells if cell]
    return (
        len(named) >= len(cells) - 1  # the corner cell is often blank
        and len(set(named)) == len(named)
        and all(
            len(cell) <= _MAX_LABEL_CHARACTERS and any(map(str.isalpha, cell)) for cell in named
        )
    )


def _labelled(row: Sequence[str], labels: Sequence[str]) -> str:
    parts = []
    for column, cell in enumerate(row):
        if cell:
            label = labels[column] if column < len(labels) else ""
            parts.append(f"{label}: {cell}" if label and label != cell else cell)
    return " | ".join(parts)
