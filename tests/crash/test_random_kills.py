"""The short form of `make crash`: ten kills of a real server under load."""

from __future__ import annotations

from pathlib import Path

from evaluation.campaigns.crash import ABSENT, Campaign, Promises, marker, text_of
from tests.fakes.ollama_double import OllamaDouble
from tests.fakes.ollama_double.models import DoubleModel

KILLS = 10
EMBEDDER = DoubleModel("all-minilm:latest", "bert", 512, dimension=32)


def test_kills_at_random_moments_lose_nothing(tmp_path: Path) -> None:
    # An embedder outside of the server, which outlives it and takes no time to load: a third of a
    # restart.
    with OllamaDouble([EMBEDDER]) as double:
        settings = {
            "OLLAMA_BASE_URL": double.url,
            "EMBEDDING_MODEL": "all-minilm",
            "EMBEDDING_PROVIDER": "ollama",
        }
        campaign = Campaign(tmp_path, seed=5, longest_load_s=0.4, settings=settings)
        campaign.run(KILLS)
        asked, vectors = campaign.finish()
    tally = campaign.tally
    assert tally.broken == []
    assert tally.kills_in_open_writes >= 0.7 * KILLS
    assert (asked, vectors) != (0, 0)
    assert asked == vectors


def test_a_campaign_goes_on_where_it_stopped(tmp_path: Path) -> None:
    promises = Promises()
    first = promises.next_revision("a")
    promises.acknowledge("a", first, "vectors")
    promises.next_revision("a")
    promises.begin_delete("b")
    promises.save(tmp_path / "promises.json")
    again = Promises.load(tmp_path / "promises.json")
    assert (again.settled, again.possible, again.with_vectors) == (
        {"a": 1},
        {"a": [1, 2], "b": [ABSENT, ABSENT]},
        {"a"},
    )
    assert again.next_revision("a") == 3


def test_words_and_texts_are_a_revision_s_own() -> None:
    assert marker("a", 1) in text_of("a", 1)
    assert marker("a", 1) not in text_of("a", 2)
    assert len({marker(key, revision) for key in "abc" for revision in (1, 2)}) == 6
