"""Read what an Obsidian vault knows of its notes: their address, tags, aliases and links.

References:
    Obsidian's URI scheme (`obsidian://open?vault=&file=`), its settings of templates
    (`.obsidian/templates.json`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

from app.core.labels import MOST_VALUE_CHARACTERS, Labels, found_labels
from app.core.links import (
    ALIASES,
    BLOCKS,
    LINKS,
    OBSIDIAN,
    as_list,
    listed,
    named_block,
    obsidian_address,
    obsidian_note,
)
from app.core.types import Document
from app.ingest.parsers.markdown import front_matter

CONFIGURATION = ".obsidian"
"""The folder that makes a folder a vault."""
NOTE = ".md"
_DRAWN = {
    ".canvas": "a canvas: its cards are read where they are notes",
    ".base": "a view of notes",
}
_CODE = re.compile(r"^(```|~~~).*?^\1[ \t]*$|`[^`\n]*`", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\[\[([^\[\]|#^\n]{1,200})(?:[#^][^\[\]|\n]*)?(?:\|([^\[\]\n]*))?\]\]")
_TO_FILE = re.compile(r"(?<!!)\[([^\[\]\n]*)\]\(<?([^()<>\n:#]{1,200}\.md)(?:#[^()<>\n]*)?>?\)")
"""A link in Markdown's own form, which Obsidian writes where it is set to."""
_BLOCK = re.compile(r"(?:^|[ \t])\^(?=[\w-]*[^\W\d_])([A-Za-z0-9-]{3,64})[ \t]*$")
_ITEM = re.compile(r"[ \t>]*(?:[-*+]|\d{1,9}[.)])[ \t]")
_TAG = re.compile(r"(?<![\w/#&\]])#((?=[\w/-]*[^\W\d])[\w/-]{1,64})")


@dataclass(frozen=True, slots=True)
class Vault:
    """The notes of a vault, and what its settings leave out."""

    root: Path
    templates: str = ""
    """Folder of templates, which are no notes; empty: none is set."""

    def leaves_out(self, relative: str) -> str | None:
        """Return why a file holds no note of its own; None where it is read."""
        if self.templates and f"{relative}/".startswith(f"{self.templates}/"):
            return "a template"
        return _DRAWN.get(PurePosixPath(relative).suffix.lower())

    def labels(self, relative: str, text: str) -> Labels:
        """Return what a note says of itself.

        Tags are those of the front matter and of the text; `links` names the notes that it leads
        to and those that it shows within itself, as it writes them, `aliases` its other names,
        `blocks` those that it names. What other notes say changes none of it.
        """
        values, body = front_matter(text.replace("\r\n", "\n"))
        said = {str(key).lower(): value for key, value in (values or {}).items()}
        plain = _CODE.sub(" ", body)
        named = [one[1] for one in _LINK.finditer(plain)]
        named += [unquote(one[2]) for one in _TO_FILE.finditer(plain)]
        leads = dict.fromkeys(one.strip().lstrip("./").removesuffix(NOTE) for one in named)
        tags = [*_listed(said.get("tags", said.get("tag"))), *_TAG.findall(plain)]
        address = obsidian_address(self.root.name, relative.removesuffix(NOTE))
        # What a note no longer says is taken away, where a label that is not named would stay.
        return Labels(
            found_labels(tags, {}).tags or (),
            {
                OBSIDIAN: address if len(address) <= MOST_VALUE_CHARACTERS else None,
                LINKS: as_list(leads, MOST_VALUE_CHARACTERS) or None,
                ALIASES: as_list(
                    _listed(said.get("aliases", said.get("alias"))), MOST_VALUE_CHARACTERS
                )
                or None,
                BLOCKS: as_list(_blocks(plain), MOST_VALUE_CHARACTERS) or None,
            },
        )


def vault_at(root: Path) -> Vault | None:
    """Return the vault of a folder; None where Obsidian does not keep its settings in it."""
    settings = root / CONFIGURATION
    if settings.is_symlink() or not settings.is_dir():
        return None
    folder = ""
    with suppress(OSError, ValueError, TypeError, KeyError):
        folder = json.loads((settings / "templates.json").read_text("utf-8"))["folder"] or ""
    return Vault(root, str(folder).strip("/"))


def _listed(value: object) -> list[str]:
    given = value if isinstance(value, list) else str(value or "").split(",")
    return [one for one in (str(item).strip(" #") for item in given) if one]


def _blocks(body: str) -> Iterator[str]:
    """Yield the blocks that have a name; one on a line of its own is that of the block before."""
    block: list[str] = []
    before: list[str] = []
    for line in body.split("\n"):
        if not line.strip():
            block, before = [], block or before
            continue
        if _ITEM.match(line):
            block = []
        name = _BLOCK.search(line)
        own = line[: name.start()] if name else line
        if own.strip():
            block.append(own)
        if name is not None:
            yield named_block(name[1], _shown(" ".join(block or before)))


def _shown(markdown: str) -> str:
    """Return a text with what links show in their place."""
    return _TO_FILE.sub(r"\1", _LINK.sub(lambda one: one[2] or one[1], markdown))


def neighbours(note: Document, notes: Iterable[Document]) -> tuple[list[Document], list[Document]]:
    """Return the notes of its vault that a note leads to, and those that lead to it.

    A link names a note by its path, by the end of it, or by another name of the note; of several
    of one name the one with the shortest path is meant. Both lists are in order of titles.
    """
    here = obsidian_note(note.metadata.get(OBSIDIAN))
    vault: dict[str, tuple[Document, str]] = {}
    for one in notes:
        found = obsidian_note(one.metadata.get(OBSIDIAN))
        if here and found and found[0] == here[0]:
            vault[one.doc_id] = one, found[1].casefold()
    named: dict[str, str] = {}
    paths = [(path, doc_id) for doc_id, (_, path) in vault.items()]
    for path, doc_id in sorted(paths, key=lambda one: (one[0].count("/"), one)):
        parts = path.split("/")
        for at in range(len(parts)):
            named.setdefault("/".join(parts[at:]), doc_id)
    named |= dict(paths)
    for one, _ in vault.values():
        for alias in listed(one.metadata.get(ALIASES)):
            named.setdefault(alias.casefold(), one.doc_id)

    def leads(one: Document) -> set[str]:
        links = map(str.casefold, listed(one.metadata.get(LINKS)))
        return {named[link] for link in links if link in named} - {one.doc_id}

    to = leads(note)
    others = sorted((one for one, _ in vault.values()), key=lambda one: one.title)
    back = [one for one in others if note.doc_id in leads(one)]
    return [one for one in others if one.doc_id in to], back
