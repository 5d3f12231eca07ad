"""What a cutoff drops is read again where nothing that passed answers."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from app.core.types import SourcesEvent
from tests.fakes.readers import WordReader
from tests.unit.answer.bench import Bench, codes, papers

QUESTION = "What kind of place did the astronomer come from?"


class SureReader(WordReader):
    """Is sure of one unit, and that no other answers."""

    def __init__(self, words: str) -> None:
        self._words = words

    def answers(self, question: str, units: Sequence[str]) -> list[float]:
        return [9.0 if self._words in unit else -9.0 for unit in units]


def test_the_reader_finds_what_is_said_in_other_words() -> None:
    bench = Bench(reader=SureReader("born in Porto"), fallback=False)
    events = bench.events(papers(QUESTION))
    answer = bench.ask(papers(QUESTION))
    assert (answer.status, answer.nearest) == ("answered", ())
    assert "Duarte was born in Porto" in answer.text
    (source,) = {item.hit.passage.document.source_key for item in answer.evidence}
    assert source == "duarte"
    assert answer.sentences[0].citations[0].n == 1
    sources = [event.evidence for event in events if isinstance(event, SourcesEvent)]
    assert [len(one) for one in sources] == [0, 1]  # found by the first search, then by the second


@pytest.mark.parametrize("reader", [None, SureReader("nowhere")])
def test_without_a_reader_that_is_sure_the_question_is_refused(reader: WordReader | None) -> None:
    answer = Bench(reader=reader, fallback=False).ask(papers(QUESTION))
    assert (answer.status, answer.evidence) == ("abstained", ())


def test_the_cutoff_of_a_user_is_kept() -> None:
    bench = Bench(reader=SureReader("born in Porto"), fallback=False)
    answer = bench.ask(papers(QUESTION, fusion="dense"))
    assert answer.status == "abstained"
    assert "cutoff_overruled" not in codes(answer)
