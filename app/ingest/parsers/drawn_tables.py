"""Read tables that are drawn with signs in plain text: `+---+`, `|`, or lines of boxes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby

_BORDER = re.compile(
    r"[ \t]*[+\u250c\u251c\u2514\u2554\u2560\u255a\u256d\u2570\u250f\u2523\u2517]"
    r"[-=+\u2500\u2501\u2550\u252c\u253c\u2534\u2566\u256c\u2569\u2533\u254b\u253b]{2,}"
    r"[+\u2510\u2524\u2518\u2557\u2563\u255d\u256e\u256f\u2513\u252b\u251b][ \t]*"
)
_ROW = re.compile(r"[ \t]*[|\u2502\u2503\u2551].*[|\u2502\u2503\u2551][ \t]*")
_BETWEEN = re.compile(r"[|\u2502\u2503\u2551]")
_LEAST_COLUMNS = 2
_HEAD_AND_BODY = 2
"""Bands of a table whose rows no border parts."""

Row = list[str]


def with_rows(text: str) -> str:
    """Return a text whose drawn tables are rows below their heads: `Label: value`."""
    if not _BORDER.search(text):
        return text
    lines = text.split("\n")
    made: list[str] = []
    for is_drawn, run in groupby(
        lines, lambda line: bool(_BORDER.fullmatch(line) or _ROW.fullmatch(line))
    ):
        drawn = list(run)
        made += (_rows(drawn) if is_drawn else None) or drawn
    return "\n".join(made)


def _rows(lines: Sequence[str]) -> list[str] | None:
    """Return a drawn table as rows; None if it is none."""
    bands: list[list[Row]] = [[]]
    for line in lines:
        if _BORDER.fullmatch(line):
            bands.append([])
        else:
            bands[-1].append([cell.strip() for cell in _BETWEEN.split(line.strip())[1:-1]])
    bands = [band for band in bands if band]
    widths = {len(row) for band in bands for row in band}
    if len(widths) != 1 or min(widths) < _LEAST_COLUMNS or len(bands) < _HEAD_AND_BODY:
        return None
    heads = _joined(bands[0])
    bodies = bands[1:]
    rows = _continued(bodies[0]) if len(bodies) == 1 else [_joined(band) for band in bodies]
    labelled = [
        " | ".join(
            f"{label}: {cell}" if label else cell
            for label, cell in zip(heads, row, strict=True)
            if cell
        )
        for row in rows
    ]
    return [" | ".join(filter(None, heads)), *filter(None, labelled)]


def _joined(band: Sequence[Row]) -> Row:
    """Return the lines of one row as one."""
    return [" ".join(filter(None, cells)) for cells in zip(*band, strict=True)]


def _continued(band: Sequence[Row]) -> list[Row]:
    """Return rows; a line whose first cell is empty goes on in the row above."""
    rows: list[list[Row]] = []
    for row in band:
        if rows and not row[0]:
            rows[-1].append(row)
        else:
            rows.append([row])
    return [_joined(lines) for lines in rows]
