"""Formulas in TeX as one line of plain characters."""

from __future__ import annotations

import re
from functools import cache
from html.entities import html5
from itertools import pairwise
from typing import Any

from pylatexenc import latex2text, latexwalker, macrospec

_LONGEST = 5_000
"""Characters; a longer formula stays TeX, which costs no time."""
_FRACTIONS = frozenset({"frac", "dfrac", "tfrac", "cfrac", "nicefrac", "sfrac", "over"})
_BINOMIALS = frozenset({"binom", "dbinom", "tbinom", "choose"})
_STACKED = frozenset({"overset", "underset", "stackrel"})
_INFIX = frozenset({"over", "choose"})
_UNSEEN = frozenset(
    "displaystyle textstyle scriptstyle scriptscriptstyle limits nolimits left right middle big Big"
    " bigg Bigg bigl bigr Bigl Bigr biggl biggr Biggl Biggr rm bf it sf tt cal label tag notag"
    " nonumber color definecolor pagecolor vphantom hphantom phantom hline".split()
)
_PLAIN_STYLES = "mathbf mathit mathcal mathscr mathfrak mathsf mathtt boldsymbol bm pmb".split()
"""Letters of these styles stay letters, which a search finds."""
_SIGNS = {"neg": "¬", "implies": "⇒", "gets": "←", "degree": "°", "pmod": " mod ", "bmod": " mod "}
_OPERATORS = frozenset("deg sup min max inf lim det arg dim ker exp log Pr Re Im".split())
_CHEMICAL = frozenset({"ce", "mathrm", "text", "mbox", "operatorname", "mathop"})
_INDEX = re.compile(r"(?<=[A-Za-z)])_(?=\d)")
"""Of a formula in upright letters: H2O."""
_SIMPLE = re.compile(r"\([^()]*\)\Z|[^\W_]+(?:[.,]\d+)?\Z|[^\w\s]\Z|[^\W\d_]_[^\W_]+\Z")
_POWER = re.compile(r"[+\-\u2212]?\d+(?:[.,]\d+)?\Z|[^\s]\Z")
_DEGREE = re.compile(r"\^(?:∘|\(∘\))")


def formula(tex: str) -> str:
    r"""Return a formula as a line of text: `\frac{a+b}{2}\cdot 10^{-9}` is `(a+b)/2·10^-9`.

    What would change its value gets parentheses. TeX that cannot be read stays as it is.
    """
    plain = " ".join(tex.split())
    if len(plain) > _LONGEST:
        return plain
    texts, macros = _contexts()
    try:
        nodes, _, _ = latexwalker.LatexWalker(
            plain, latex_context=macros, tolerant_parsing=True
        ).get_latex_nodes()
        text = _Reader(texts, math_mode="text").nodelist_to_text(nodes)
    except (
        *(RecursionError, latexwalker.LatexWalkerError, LookupError, ValueError),
        *(TypeError, AttributeError),  # the library takes the arguments of a macro for granted
    ):
        return plain
    return _DEGREE.sub("°", " ".join(text.split())) or plain


class _Reader(latex2text.LatexNodes2Text):  # type: ignore[misc]  # pylatexenc has no types
    """Keeps what pylatexenc leaves out: the extent of powers, fractions and roots."""

    def nodelist_to_text(self, nodelist: list[Any]) -> str:
        for at, node in enumerate(nodelist):
            if _name(node) in _INFIX:
                return self._pair(
                    node.macroname,
                    self.nodelist_to_text(nodelist[:at]),
                    self.nodelist_to_text(nodelist[at + 1 :]),
                )
        text = ""
        for before, node in pairwise([None, *nodelist]):
            part = self.node_to_text(node)
            if text.endswith(("^", "_")):
                is_whole = (_POWER if text.endswith("^") else _SIMPLE).match(part.strip())
                part = part.strip() if is_whole else f"({part.strip()})"
            elif _name(before) and not (before.nodeargd and before.nodeargd.argnlist):
                is_word = text[-1:].isalpha() and text.endswith(_name(before))
                part = (before.macro_post_space or " " * is_word) + part
            text += part
        return text

    def macro_node_to_text(self, node: Any) -> str:  # as above
        name = node.macroname
        found = node.nodeargd.argnlist if node.nodeargd and node.nodeargd.argnlist else []
        arguments = [self.nodelist_to_text([each]) if each else "" for each in found]
        if name in _UNSEEN:
            return ""
        if name in _FRACTIONS | _BINOMIALS:
            return self._pair(name, *arguments) if len(arguments) == 2 else ""
        if name == "sqrt":
            index = f"[{arguments[0]}]" if arguments and arguments[0] else ""
            return f"√{index}{grouped(arguments[-1].strip())}" if arguments else "√"
        if name in _CHEMICAL:
            return _INDEX.sub("", "".join(arguments))
        if name in _SIGNS:
            return _SIGNS[name]
        if self.latex_context.get_macro_spec(name) is None:
            # MediaWiki's own names are those of HTML: \\isin, \\infin, \\plusmn
            sign = name if name in _OPERATORS else html5.get(f"{name};", name)
            return " ".join(filter(None, arguments)) if found else sign
        return str(super().macro_node_to_text(node))

    @staticmethod
    def _pair(name: str, above: str, below: str) -> str:
        above, below = above.strip(), below.strip()
        if name in _BINOMIALS:
            return f"({above} choose {below})"
        return f"{grouped(above)}/{grouped(below)}"


def _name(node: Any) -> str:
    """Return the name of a macro; nothing of other nodes."""
    return str(getattr(node, "macroname", ""))


def grouped(text: str) -> str:
    """Return an operand, in parentheses if what stands next to it could be read as part of it."""
    text = text.strip()
    return text if not text or _SIMPLE.match(text) else f"({text})"


@cache
def _contexts() -> tuple[Any, Any]:
    """Return how macros are written as text, and which arguments they take."""
    texts = latex2text.get_default_latex_context_db()
    texts.add_context_category(
        "formulas",
        prepend=True,
        macros=[
            *(latex2text.MacroTextSpec(name, "%s") for name in _PLAIN_STYLES),
            latex2text.MacroTextSpec("\\", "; "),
        ],
        specials=[
            latex2text.SpecialsTextSpec("&", " "),
            *(latex2text.SpecialsTextSpec(sign, sign) for sign in ("''", "``", "--", "---")),
        ],
    )
    macros = latexwalker.get_default_latex_context_db()
    macros.add_context_category(
        "formulas",
        prepend=True,
        macros=[
            *(
                macrospec.std_macro(name, False, 2)
                for name in sorted((_FRACTIONS | _BINOMIALS | _STACKED) - _INFIX)
            ),
            *(
                macrospec.std_macro(name, False, 1)
                for name in sorted(_CHEMICAL | {"phantom", "hphantom", "vphantom", "substack"})
            ),
        ],
    )
    return texts, macros
