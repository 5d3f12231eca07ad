"""Write a dump's articles as text files.

`python -m scripts.stream_wikipedia_to_txt DUMP OUT --articles 1000`

One file an article, its title on the first line, in folders of a thousand;
`scripts.bulk_index_public OUT` indexes them.
"""

from __future__ import annotations

import argparse
from itertools import islice
from pathlib import Path

from app.cli.main import run_at_edge
from app.core.errors import DocuMindError
from app.ingest.bulk import ARTICLE_NAMESPACE, parse_article
from app.ingest.sources.dumps import open_articles


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("source", help="a dump, .zim, .parquet, .jsonl or hub:owner/name")
    parser.add_argument("output", type=Path, help="folder for the files")
    parser.add_argument("--articles", type=int, help="at most this many; redirects do not count")
    args = parser.parse_args()
    pages = (
        page
        for page in open_articles(args.source)
        if page.redirect_to is None and page.namespace == ARTICLE_NAMESPACE
    )
    written = 0
    for page in islice(pages, args.articles):
        try:
            text = parse_article(page).text
        except DocuMindError as error:
            print(f"{page.title!r} is left out: {error.message}")
            continue
        folder = args.output / f"{written // 1000:05d}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{written:08d}.txt").write_text(
            f"{page.title}\n\n{text}\n", encoding="utf-8", errors="replace"
        )
        written += 1
    print(f"wrote {written} articles to {args.output}")


if __name__ == "__main__":
    run_at_edge(main)
