"""A reader orders what words and vectors chose, and with them says whether there is an answer."""

from __future__ import annotations

from collections.abc import Sequence

from app.core.types import Stance
from app.generation.quote.quoting import MOST_READ, ExtractiveGenerator
from tests.unit.generation.passages import evidence

LAMP = (
    "The lamp of the tower turns every ten seconds. The keeper of the lamp lives in the tower."
    " The tower has ninety steps."
)
QUESTION = "How often does the lamp of the tower turn?"


class Prefers:
    """Likes units with a word, and keeps what it read."""

    def __init__(self, word: str) -> None:
        self.word, self.read = word, list[str]()

    @property
    def name(self) -> str:
        return "prefers"

    def answers(self, question: str, units: Sequence[str]) -> list[float]:
        self.read += units
        return [9.0 if self.word in unit else -9.0 for unit in units]

    def stances(self, pairs: Sequence[tuple[str, str]]) -> list[Stance]:
        raise AssertionError("nothing is checked here")


def test_the_reader_chooses_the_sentence_that_leads() -> None:
    found = evidence(LAMP, title="Lighthouse")
    assert "turns every ten" in ExtractiveGenerator().select(QUESTION, found).chosen[0].text
    reader = Prefers("keeper")
    chosen = ExtractiveGenerator(None, reader).select(QUESTION, found).chosen
    assert chosen[0].text == "The keeper of the lamp lives in the tower."
    assert all(unit.startswith("Lighthouse: ") for unit in reader.read)


def test_a_sure_reader_answers_what_words_refuse_and_an_unsure_one_nothing() -> None:
    found, off_topic = evidence(LAMP), "Which bank financed the railway through the gorge?"
    assert ExtractiveGenerator().select(off_topic, found).chosen == ()
    assert ExtractiveGenerator(None, Prefers("nowhere")).select(off_topic, found).chosen == ()
    sure = ExtractiveGenerator(None, Prefers("keeper")).select(off_topic, found)
    assert sure.chosen[0].text == "The keeper of the lamp lives in the tower."
    near = ExtractiveGenerator(None, Prefers("keeper")).nearest(off_topic, found)
    assert near[0].text == "The keeper of the lamp lives in the tower."
    assert len(near) == 3


def test_only_the_likeliest_are_read() -> None:
    many = " ".join(f"The lamp of tower {n} turns every {n} seconds." for n in range(1, 41))
    reader = Prefers("tower 40 ")
    ExtractiveGenerator(None, reader).nearest(QUESTION, evidence(many))
    assert len(reader.read) == MOST_READ


def test_nothing_is_nearest_where_nothing_was_found() -> None:
    assert ExtractiveGenerator(None, Prefers("x")).nearest(QUESTION, ()) == ()
