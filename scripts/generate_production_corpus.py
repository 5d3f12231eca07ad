"""Write a synthetic MediaWiki dump from a seed.

`python -m scripts.generate_production_corpus --articles 100000 OUT.xml.bz2`
"""

from __future__ import annotations

import argparse
import bz2
import sys
from pathlib import Path
from typing import TextIO, cast

from app.ingest.sources.synthetic import SyntheticEncyclopedia, SyntheticOptions, write_xml


def open_text(path: Path) -> TextIO:
    """Open for writing, compressed when the name ends in `.bz2`."""
    return (
        cast("TextIO", bz2.open(path, "wt", encoding="utf-8"))
        if path.suffix == ".bz2"
        else path.open("w", encoding="utf-8")
    )


def main() -> int:
    default = SyntheticOptions()
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("output", type=Path, help="where to write; .bz2 compresses")
    parser.add_argument(
        "--articles", type=int, default=default.articles, help="pages, redirects included"
    )
    parser.add_argument(
        "--seed", type=int, default=default.seed, help="the same seed gives the same bytes"
    )
    parser.add_argument(
        "--mean-words",
        type=int,
        default=default.mean_words,
        help="mean length of an article in words",
    )
    parser.add_argument(
        "--revision",
        type=int,
        default=1,
        help="with --changed: write a newer dump of the same encyclopedia",
    )
    parser.add_argument(
        "--changed", type=float, default=0.0, help="share of pages whose revision is new"
    )
    parser.add_argument(
        "--deleted", type=float, default=0.0, help="share of pages that are missing"
    )
    args = parser.parse_args()
    options = SyntheticOptions(
        articles=args.articles,
        seed=args.seed,
        mean_words=args.mean_words,
        revision=args.revision,
        changed_share=args.changed,
        deleted_share=args.deleted,
    )
    with open_text(args.output) as file:
        pages = write_xml(SyntheticEncyclopedia(options), file)
    print(f"wrote {pages} pages to {args.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
