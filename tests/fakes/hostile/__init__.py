"""Files made to hurt a parser, written by code: bombs, loops, lies, polyglots and oddities, with what may become of each.

`files()` yields them lazily: some are large. `verdicts` are codes of the error tree, or `indexed`
where the content is harmless once it is read as text. docs/facts/libraries.md names the limits.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.fakes.hostile.archives import ARCHIVES
from tests.fakes.hostile.mails import MAILS
from tests.fakes.hostile.marked_up import MARKED_UP
from tests.fakes.hostile.model import CANARY, HostileFile
from tests.fakes.hostile.pdfs import PDFS
from tests.fakes.hostile.plain import PLAIN
from tests.fakes.hostile.tables import TABLES
from tests.fakes.hostile.writings import WRITINGS

__all__ = ["CANARY", "HostileFile", "files"]


def files(*, slow: bool = True) -> Iterator[HostileFile]:
    """Yield all of them, or those that neither take long to make nor long to refuse."""
    for file in (*PDFS, *ARCHIVES, *MARKED_UP, *MAILS, *WRITINGS, *TABLES, *PLAIN):
        if slow or not file.slow:
            yield file
