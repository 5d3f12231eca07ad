"""Measure how often yes or no is said before a quote, and rightly.

    python -m evaluation.studies.yes_no [--data DIR] [--questions N]

A question of squad and its answer make a statement, which is asked as "Is it true that ...?" of
its passage: yes is right. Then of another passage, or with a number, a name or a denial changed:
yes is wrong. Where yes was said, the passage is denied too: then no is right. Writes evaluation/reports/yes_no.{json,md}.
"""

from __future__ import annotations

import random
import re
from collections import defaultdict
from dataclasses import replace

from app.core.release import checkout_sha
from app.core.sentences import sentence_spans
from app.core.types import Evidence, Hit
from app.evaluation.collections import from_folder
from app.evaluation.report import Provenance
from app.generation.extractive import ExtractiveGenerator
from app.generation.yes_no import settled_by
from evaluation.lib.extractive.calibration import share
from evaluation.lib.planting import Case, Planter
from evaluation.lib.workbench import SEED, Figures, arguments, write_figures

_VERB = re.compile(r"\b(?:is|are|was|were|did|does|has|have|had)\b")
_SAID = ("Yes", "No", None)


def main() -> None:
    """Ask every statement, count the words, write the report."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--questions", type=int, default=2000, help="most questions")
    given = parser.parse_args()
    squad = from_folder(given.data / "squad").judged()
    asked = [one for one in squad.questions if one.answerable and one.answers]
    chosen = random.Random(SEED).sample(asked, min(given.questions, len(asked)))
    planter, extractive = Planter(squad, SEED), ExtractiveGenerator()
    found: dict[str, list[str | None]] = defaultdict(list)
    for question in chosen:
        for case in planter.cases(question):
            found[case.kind].append(_word(case, extractive))
            if found["right"][-1] == "Yes" and case.kind == "right" and (denied := _denied(case)):
                found["right, denied by the passage"].append(_word(denied, extractive))
    lines = ["| statement | asked | yes | no | nothing said |", "|---|---|---|---|---|"]
    for kind, words in found.items():
        cells = [share([one == word for one in words]) for word in _SAID]
        lines.append(f"| {kind} | {len(words)} | {' | '.join(cells)} |")
    said = [
        (kind == "right", word == "Yes") for kind, words in found.items() for word in words if word
    ]
    right = [true is yes for true, yes in said]
    remark = f"Where a word was said, it was right in {share(right)} of {len(right)}."
    figures = {
        f"{kind}: {word}": float(words.count(word))
        for kind, words in found.items()
        for word in _SAID
    }
    made = Provenance(checkout_sha(), "", "", {}, SEED)
    title = "Yes or no in front of a quote"
    write_figures(Figures(title, made, figures, {}, [remark], [*lines, ""]), "yes_no")


def _denied(case: Case) -> Case | None:
    """Return the case with a verb of each sentence denied, None if one has none."""
    text = case.passage.chunk.text
    sentences = [text[start:end] for start, end in sentence_spans(text)]
    denied = [_VERB.sub(lambda verb: f"{verb.group()} not", one, count=1) for one in sentences]
    if any(one == other for one, other in zip(sentences, denied, strict=True)):
        return None
    text = " ".join(denied)
    chunk = replace(case.passage.chunk, text=text, end=len(text))
    return replace(case, passage=replace(case.passage, chunk=chunk))


def _word(case: Case, extractive: ExtractiveGenerator) -> str | None:
    question = f"Is it true that {case.claim.rstrip('.')}?"
    quoted = extractive.select(question, [Evidence(1, Hit(case.passage, 1.0))]).chosen
    return settled_by(question, quoted)


if __name__ == "__main__":
    main()
