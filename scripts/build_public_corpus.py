"""Fill the public library: `python -m scripts.build_public_corpus --articles N`.

Reads the hub's `wikimedia/wikipedia` by default, or any source that `documind bulk index` reads.
Running it again goes on.
"""

from __future__ import annotations

import argparse

from app.cli.main import main as documind

SOURCE = "hub:wikimedia/wikipedia:20231101.en"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument(
        "--source",
        default=SOURCE,
        help="hub:owner/name, a dump, .zim, .parquet, .jsonl or a folder",
    )
    parser.add_argument(
        "--articles",
        type=int,
        default=0,
        help="how many, from the beginning, redirects not counted; 0: all",
    )
    parser.add_argument("--allow-unbounded", action="store_true", help="allow all of them")
    args = parser.parse_args()
    if args.articles < 0 or (args.articles == 0 and not args.allow_unbounded):
        parser.error(
            "say how many --articles, or --allow-unbounded for all: English Wikipedia takes hours"
            " and 100 GB (docs/scale.md)"
        )
    limit = ["--articles", str(args.articles)] if args.articles else []
    documind(["bulk", "index", args.source, "--library", "public", *limit])


if __name__ == "__main__":
    main()
