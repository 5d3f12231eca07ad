"""Write a synthetic MediaWiki dump from a seed.

`python -m scripts.generate_production_corpus --articles 100000 OUT.xml.bz2`
"""

from __future__ import annotations

import argparse
import bz2
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import IO, TextIO, cast

import numpy as np

from app.core.types import Article

_ONSETS = "b c d f g h j k l m n p r s t v w br cl dr fl gr pl pr sh st str th tr".split()
_VOWELS = "a e i o u ai ea ee io ou".split()
_CODAS = ["", "", "", "n", "r", "s", "t", "l", "m", "nd", "rt", "st", "ck", "ng"]
_BASE_URL = "https://synthetic.example/wiki/"
HEAD = (
    '<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.10/" version="0.10" xml:lang="en">\n '
    " <siteinfo>\n"
    "    <sitename>Synthetic</sitename>\n    <dbname>synthetic</dbname>\n"
    f"    <base>{_BASE_URL}Main_Page</base>\n    <generator>DocuMind</generator>\n   "
    " <case>first-letter</case>\n"
    '    <namespaces><namespace key="0" case="first-letter" /></namespaces>\n'
    "  </siteinfo>\n"
)


@dataclass(frozen=True, slots=True)
class SyntheticOptions:
    articles: int = 1000
    seed: int = 7
    vocabulary: int = 50_000
    """Distinct words; a word's frequency falls with its rank to the power `zipf`."""
    zipf: float = 1.05  # English text: about 1 (Zipf 1949; Piantadosi 2014)
    mean_words: int = 600
    """Mean length of an article, log-normal: many short ones, few long ones."""
    redirect_share: float = 0.1
    revision: int = 1
    """Raise it, with `changed_share`, to get a newer dump of the same encyclopedia."""
    changed_share: float = 0.0
    deleted_share: float = 0.0


class SyntheticEncyclopedia:
    """A stream of articles with the markup of real ones, in constant memory.

    Iterating again gives the same ones. Made for scale and crash tests, where a real dump is too
    large to carry.
    """

    def __init__(self, options: SyntheticOptions) -> None:
        self._options = options
        rng = np.random.default_rng(options.seed)
        self._words = _vocabulary(rng, options.vocabulary)
        ranks = np.arange(1, options.vocabulary + 1, dtype=np.float64)
        weights = ranks**-options.zipf
        self._cumulative = np.cumsum(weights / weights.sum())

    def __iter__(self) -> Iterator[Article]:
        for number in range(1, self._options.articles + 1):
            rng = np.random.default_rng((self._options.seed, number))
            redirect, changed, deleted = rng.random(3)
            if deleted < self._options.deleted_share:
                continue
            revision = self._options.revision if changed < self._options.changed_share else 1
            title = self._title(number)
            if redirect < self._options.redirect_share and number > 1:
                target = self._title(int(rng.integers(1, number)))
                yield self._article(number, revision, title, f"#REDIRECT [[{target}]]", target)
            else:
                yield self._article(
                    number, revision, title, self._page(rng, title, number, revision), None
                )

    def _article(
        self, number: int, revision: int, title: str, source: str, redirect_to: str | None
    ) -> Article:
        url = _BASE_URL + title.replace(" ", "_")
        return Article(
            str(number),
            f"{number}{revision:03d}",
            title,
            "wikitext",
            source,
            url,
            "CC BY-SA 4.0",
            redirect_to,
        )

    def _title(self, number: int) -> str:
        """Return a unique title: two words from the digits of the number."""
        first, second = divmod(number * 2_654_435_761 % (len(self._words) ** 2), len(self._words))
        return f"{self._words[first].capitalize()} {self._words[second]} {number}"

    def _page(self, rng: np.random.Generator, title: str, number: int, revision: int) -> str:
        words = max(30, int(rng.lognormal(np.log(self._options.mean_words), 0.8)))
        kind, place = self._draw(rng, 2)
        parts = [
            f"{{{{Infobox {kind}|name={title}|image=File{number}.jpg"
            f"|place=[[{place.capitalize()}]]}}}}\n"
            f"'''{title}''' is a {kind}"
            f" of {place}, number {number} in revision {revision}. "
        ]
        written = 0
        section = 0
        while written < words:
            if section and rng.random() < 0.5:
                level = "==" if rng.random() < 0.7 else "==="
                parts.append(f"\n\n{level} {' '.join(self._draw(rng, 2)).capitalize()} {level}\n")
            if rng.random() < 0.06:
                parts.append(self._table(rng))
            for _ in range(int(rng.integers(2, 6))):
                sentence, count = self._sentence(rng, number)
                parts.append(sentence)
                written += count
            parts.append("\n\n")
            section += 1
        parts.append("== References ==\n{{reflist}}\n[[Category:" + kind.capitalize() + "]]\n")
        return "".join(parts)

    def _sentence(self, rng: np.random.Generator, number: int) -> tuple[str, int]:
        words = self._draw(rng, int(rng.integers(6, 28)))
        count = len(words)
        if rng.random() < 0.5 and number > 1:
            target = self._title(1 + int(rng.integers(0, number) ** 2 // number))
            words[int(rng.integers(count))] = f"[[{target}|{words[-1]}]]"
        if rng.random() < 0.2:
            words.append(str(int(rng.integers(1000, 2030))))
        reference = (
            f"<ref>{{{{cite web|title={words[0]}|year=2001}}}}</ref>" if rng.random() < 0.25 else ""
        )
        return " ".join(words).capitalize() + "." + reference + " ", count

    def _table(self, rng: np.random.Generator) -> str:
        rows = "".join(
            f"|-\n| {a} || {b}\n" for a, b in zip(*[iter(self._draw(rng, 8))] * 2, strict=True)
        )
        return f'\n{{| class="wikitable"\n! Name !! Value\n{rows}|}}\n'

    def _draw(self, rng: np.random.Generator, count: int) -> list[str]:
        return [self._words[i] for i in np.searchsorted(self._cumulative, rng.random(count))]


def _vocabulary(rng: np.random.Generator, size: int) -> list[str]:
    """Return distinct pronounceable words, shorter ones first, as frequent words are."""
    words: dict[str, None] = {}
    while len(words) < size:
        syllables = 1 + len(words).bit_length() // 7
        word = "".join(
            _ONSETS[rng.integers(len(_ONSETS))]
            + _VOWELS[rng.integers(len(_VOWELS))]
            + _CODAS[rng.integers(len(_CODAS))]
            for _ in range(syllables)
        )
        words.setdefault(word if word not in words else word + _VOWELS[rng.integers(len(_VOWELS))])
    return list(words)


def write_xml(encyclopedia: SyntheticEncyclopedia, file: IO[str]) -> int:
    file.write(HEAD)
    pages = 0
    for pages, article in enumerate(encyclopedia, 1):  # noqa: B007  # the count is the result
        target = (
            f'    <redirect title="{escape(article.redirect_to)}" />\n'
            if article.redirect_to
            else ""
        )
        file.write(
            f"  <page>\n    <title>{escape(article.title)}</title>\n    <ns>0</ns>\n   "
            f" <id>{article.key}</id>\n{target}"
            f"    <revision>\n      <id>{article.revision}</id>\n     "
            " <timestamp>2026-01-01T00:00:00Z</timestamp>\n"
            "      <contributor><username>DocuMind</username><id>1</id></contributor>\n     "
            " <model>wikitext</model>\n"
            "      <format>text/x-wiki</format>\n"
            f'      <text xml:space="preserve">{escape(article.source)}</text>\n      <sha1 />\n'
            "    </revision>\n  </page>\n"
        )
    file.write("</mediawiki>\n")
    return pages


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
