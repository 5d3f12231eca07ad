"""Generate the load test's documents, and answers that cite them, reworded."""

from __future__ import annotations

import random
import re

TITLE = "Copper"
FACTS = (
    "Copper is a soft red metal that was worked before any other metal of daily use",
    "It melts at 1085 degrees Celsius and boils at 2562 degrees Celsius",
    "Its density near room temperature is 8.96 grams per cubic centimetre",
    "The oldest copper mines of the Timna valley were dug more than 6000 years ago",
    "Roman copper came mainly from Cyprus, after which the metal is named",
    "A green layer of carbonate protects copper roofs from further corrosion",
    "Bronze is an alloy of copper with about 12 percent tin",
    "Brass is an alloy of copper with zinc, and it is easier to cast than copper itself",
    "Only silver conducts electricity better than copper at room temperature",
    "About 60 percent of all copper is used for wires and cables",
    "Chile has been the largest producer of copper for more than 30 years",
    "The mine at Escondida yields about a million tonnes of copper in a good year",
    "Copper can be recycled again and again without losing any of its quality",
    "A third of the copper that is used each year comes from recycled scrap",
    "Human bodies hold between one and two milligrams of copper per kilogram",
    "Octopuses carry oxygen in blood that contains copper instead of iron",
    "Bacteria die within hours on surfaces that are made of copper alloys",
    "Copper sulfate is sprayed on vines to keep mildew away from the leaves",
    "Electrolytic refining brings copper to a purity of 99.99 percent",
    "The price of copper is often read as a sign of the health of an economy",
    "Copper wire replaced iron wire in telegraph lines around the year 1880",
    "The Statue of Liberty is covered with 80 tonnes of copper sheet",
    "Smelters roast copper sulfide ores and blow air through the molten matte",
    "Low-grade ores are leached with dilute acid and recovered by solvent extraction",
)
QUESTIONS = (
    "What is the melting point of copper?",
    "Which alloys contain copper, and what are they used for?",
    "Where was copper mined in antiquity?",
    "How is copper refined to a high purity?",
    "Why are wires made of copper?",
    "Which animals need copper, and what for?",
    "How much copper is recycled?",
    "What happens to copper roofs in the weather?",
)
SENTENCES = 13
"""Of an answer; about 200 tokens."""
# A thousand openings for each fact: hardly a sentence is said twice, so that none is remembered by
# the check of another.
_ADVERBS = (
    "Moreover",
    "In short",
    "Besides",
    "Indeed",
    "Here",
    "In fact",
    "Again",
    "Also",
    "Notably",
    "In addition",
)
_SOURCES = (
    "notes",
    "passages",
    "pages",
    "texts",
    "documents",
    "sources",
    "records",
    "papers",
    "files",
    "excerpts",
)
_VERBS = ("say", "state", "tell", "hold", "report", "write", "explain", "mention", "note", "show")
_PASSAGE = re.compile(r'<passage-\w+ n="(\d+)"[^>]*>\n(.*?)\n</passage-', re.DOTALL)


def document() -> str:
    """Return the only document: every fact, in paragraphs of four sentences."""
    paragraphs = (". ".join(FACTS[at : at + 4]) + "." for at in range(0, len(FACTS), 4))
    return f"{TITLE}\n\n" + "\n\n".join(paragraphs) + "\n"


def answer_to(prompt: str, draw: random.Random) -> str:
    """Return an answer from the passages of a prompt; hardly one is given twice."""
    held = [
        (fact, number)
        for number, text in _PASSAGE.findall(prompt)
        for fact in FACTS
        if fact in text
    ]
    chosen = [draw.choice(held) for _ in range(SENTENCES)] if held else []
    return " ".join(
        f"{_opening(draw)} {fact[0].lower()}{fact[1:]} [{number}]." for fact, number in chosen
    )


def _opening(draw: random.Random) -> str:
    return f"{draw.choice(_ADVERBS)}, the {draw.choice(_SOURCES)} {draw.choice(_VERBS)} that"
