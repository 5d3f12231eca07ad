"""Write app/generation/language/antonyms.txt from WordNet's files of opposites.

    python -m scripts.write_antonyms FOLDER

FOLDER holds `data.noun`, `data.verb`, `data.adj`, `data.adv` of WordNet 3.0 (Debian: the package wordnet-base puts them under
/usr/share/wordnet). Only pairs of single words are kept, as stems; each pair stands once, the first in the alphabet first.
"""

from __future__ import annotations

from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Iterator
from pathlib import Path

from app.core.text import tokenise

_ROOT = Path(__file__).resolve().parent.parent
_HEAD = """\
# Stems of opposites, one pair a line. Made by: python -m scripts.write_antonyms FOLDER
# From WordNet 3.0, Copyright 2006 by Princeton University. All rights reserved. Licence: see NOTICE.
"""
_POINTER = 4
"""Fields of a pointer: symbol, offset, part of speech, source and target word."""


def pairs(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the words of each antonym pointer, as WordNet writes them."""
    words: dict[tuple[str, str], list[str]] = {}
    found: list[tuple[str, tuple[str, str], int]] = []
    for part in ("noun", "verb", "adj", "adv"):
        for line in (folder / f"data.{part}").read_text(encoding="utf-8").splitlines():
            if line.startswith("  "):
                continue  # the licence
            fields = line.split("|")[0].split()
            count = int(fields[3], 16)
            own = [word.split("(")[0] for word in fields[4 : 4 + 2 * count : 2]]
            words[fields[2].replace("s", "a"), fields[0]] = own
            at = 5 + 2 * count
            for symbol, offset, kind, ends in zip(
                *(fields[at + k :: _POINTER] for k in range(_POINTER)), strict=False
            ):
                if symbol == "!":
                    found.append(
                        (
                            own[int(ends[:2], 16) - 1],
                            (kind.replace("s", "a"), offset),
                            int(ends[2:], 16) - 1,
                        )
                    )
    yield from ((word, words[target][position]) for word, target, position in found)


def main() -> None:
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument(
        "folder", type=Path, help="WordNet's folder dict, with data.noun and the others"
    )
    single = (pair for pair in pairs(parser.parse_args().folder) if "_" not in "".join(pair))
    stems = {tuple(sorted((*tokenise(first), *tokenise(second)))) for first, second in single}
    kept = (
        pair for pair in stems if len(set(pair)) == len(pair) == 2 and all(map(str.isalpha, pair))
    )
    lines = sorted(" ".join(pair) for pair in kept)
    (_ROOT / "app" / "generation" / "language" / "antonyms.txt").write_text(
        _HEAD + "\n".join(lines) + "\n", encoding="utf-8"
    )


if __name__ == "__main__":
    main()
