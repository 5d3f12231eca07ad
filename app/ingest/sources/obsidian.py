"""Read what an Obsidian vault knows of its notes: their address, tags, aliases and links.

References:
    Obsidian's URI scheme (`obsidian://open?vault=&file=`), its settings of templates
    (`.obsidian/templates.json`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from app.core.labels import MOST_VALUE_CHARACTERS, Labels, found_labels
from app.core.links import OBSIDIAN, obsidian_address
from app.ingest.parsers.markdown import front_matter

CONFIGURATION = ".obsidian"
"""The folder that makes a folder a vault."""
NOTE = ".md"
_DRAWN = {
    ".canvas": "a canvas: its cards are read where they are notes",
    ".base": "a view of notes",
}
_CODE = re.compile(r"^(```|~~~).*?^\1[ \t]*$|`[^`\n]*`", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\[\[([^\[\]|#^\n]{1,200})(?:[#^][^\[\]|\n]*)?(?:\|[^\[\]\n]*)?\]\]")
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
        to, as it writes them, `aliases` its other names. What other notes say changes none of it.
        """
        values, body = front_matter(text.replace("\r\n", "\n"))
        said = {str(key).lower(): value for key, value in (values or {}).items()}
        plain = _CODE.sub(" ", body)
        named = (PurePosixPath(one.strip()).name.removesuffix(NOTE) for one in _LINK.findall(plain))
        tags = [*_listed(said.get("tags", said.get("tag"))), *_TAG.findall(plain)]
        address = obsidian_address(self.root.name, relative.removesuffix(NOTE))
        # What a note no longer says is taken away, where a label that is not named would stay.
        return Labels(
            found_labels(tags, {}).tags or (),
            {
                OBSIDIAN: address if len(address) <= MOST_VALUE_CHARACTERS else None,
                "links": _line(dict.fromkeys(named)) or None,
                "aliases": _line(_listed(said.get("aliases", said.get("alias")))) or None,
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


def _line(names: Iterable[str]) -> str:
    """Return names as one value, the last ones left out where it would be too long."""
    line = ""
    for name in names:
        longer = f"{line}; {name}" if line else name
        if len(longer) > MOST_VALUE_CHARACTERS:
            break
        line = longer
    return line
