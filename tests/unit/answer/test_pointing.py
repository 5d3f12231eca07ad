"""Which questions stand alone in a conversation, and which lean on the one before them."""

from __future__ import annotations

import pytest

from app.answer.pointing import stands_alone
from app.answer.questions import carried
from app.core.types import Library, Message, Question
from tests.stores import passage
from tests.unit.answer.bench import Bench, codes

ALONE = (
    "What is a monsoon?",
    "How is paper made?",
    "How do tides work?",
    "What are black holes?",
    "Why do cats purr when you stroke them?",
    "How do plants make their food?",
    "Who was the first president of the United States?",
    "How long does it take to cook rice?",
    "Is it safe to drink sea water?",
    "Is there life on Mars?",
    "What is the melting point of silver?",
    "Which metal conducts electricity best?",
    "What happens to water when it freezes?",
    "Explain photosynthesis.",
    "How does Kubernetes restart a pod?",
    "And what is a volcano?",
    "So how do whales sleep?",
    "What does the IT department do?",
    "Who said that the Earth moves around the Sun?",
    "What is the capital of Peru and how many people live in it?",
    "How many seconds are in one day?",
    "What happened this year in the mill?",
    "Was ist ein Monsun?",
    "¿Cómo se hace el papel?",
)
"""After any other question they are searched as they stand."""

POINTING = (
    "How is it made?",
    "What is its melting point?",
    "And in winter?",
    "And the melting point?",
    "Why?",
    "Since when?",
    "Which country?",
    "What about silver?",
    "How about at night?",
    "The second one?",
    "What does the second one do?",
    "Which one is older?",
    "And the third?",
    "When did Marie Curie discover it?",
    "Who painted them?",
    "What did she study before she left?",
    "How many people live there?",
    "What do those metals have in common?",
    "Is that dangerous?",
    "Tell me more.",
    "Yes, please.",
    "Regional differences",
    "Und im Winter?",
    "¿Y en invierno?",
)
"""They need the question before them."""


@pytest.mark.parametrize("question", ALONE)
def test_a_question_that_says_all_stands_alone(question: str) -> None:
    assert stands_alone(question, ["How do bees make honey?"])


@pytest.mark.parametrize("question", POINTING)
def test_a_question_that_points_back_does_not(question: str) -> None:
    assert not stands_alone(question, ["How does copper conduct electricity?"])
    asked = carried(question, ["How does copper age?"], "papers", Bench().searcher_for)
    assert asked == f"copper: {question}"


@pytest.mark.parametrize(
    ("question", "alone"),
    [
        ("Where does the Danube end, and how long is it?", True),
        ("How do you store potatoes to keep them fresh?", True),
        ("What is the difference between arabica and robusta, and are both grown in Brazil?", True),
        ("Do both robusta and arabica grow in Brazil?", True),
        ("What are those who fish called?", True),
        ("What is the main finding of this paper?", True),
        ("What is paid to it?", False),
        ("the year in which it burned.", False),
        ("What material is it made of?", False),
        ("Is it used in medicine?", False),
        ("Who married her?", False),
        ("Why does that happen?", False),
        ("How can I open one?", False),
        ("Can you tell me about its rules?", False),
        ("Compare robusta", True),
        ("What is the second one called?", False),
        ("How long does it take to build one?", False),
        ("Is it possible to cure it?", False),
        ("Which other planets have rings?", True),
        ("What is the second law of thermodynamics?", True),
        ("¿Quién lo construyó?", False),
        ("¿Cuánto cuesta?", False),
        ("Quelle est sa capitale ?", False),
        ("Quelle est la capitale du Pérou ?", True),
        ("Wie hoch ist sein Schmelzpunkt?", False),
        ("Wie viele Arten von Bienen gibt es in Europa?", True),
        ("Qual è la capitale del Perù?", True),
        ("Quando è stato costruito questo ponte?", False),
        ("¿Dónde está Madrid?", True),
        ("Qual é a capital do Peru?", True),
        ("Hoeveel mensen wonen er?", False),
        ("Wat is de hoofdstad van Peru?", True),
    ],
)
def test_a_noun_of_the_question_is_what_its_pronoun_stands_for(question: str, alone: bool) -> None:
    assert stands_alone(question) is alone


def test_who_searches_by_key_words_goes_on_to_another_topic() -> None:
    assert stands_alone("volcano eruption", ["bees honey"])
    assert not stands_alone("volcano eruption", ["How do bees make honey?"])
    assert stands_alone("Volcanoes", ["How do bees make honey?"])


CONVERSATIONS = """
How do bees make honey? | > How long does it last? | What is a monsoon? | > Why does it come in summer? | How is paper made?
What is a monsoon? | > And in India? | How is paper made? | > Who invented it? | How do tides work?
How is paper made? | How do tides work? | > Why are they higher at full moon? | What are black holes? | > Can anything leave one?
How do tides work? | > What about the Mediterranean? | > And lakes? | How do bees make honey? | > Is it healthy?
Who built the Brooklyn Bridge? | > When did he die? | How tall is the Eiffel Tower? | > Who designed it? | What is a monsoon?
What is photosynthesis? | > Where does it happen? | Which metal conducts electricity best? | > And the second best? | How do whales sleep?
How do whales sleep? | > What do they eat? | > How deep do they dive? | What causes earthquakes? | > Can they be predicted?
What causes earthquakes? | How is glass made? | > Is it a liquid? | Who wrote Hamlet? | > When was it written?
How is glass made? | > Since when? | What is the speed of light? | > Who measured it first? | How do magnets work?
How do magnets work? | > Why? | How does a refrigerator cool food? | > How much power does it need? | What is yeast?
What is yeast? | > Is that a fungus? | How do volcanoes form? | > Which one is the largest? | Why is the sea salty?
Why is the sea salty? | > And lakes? | How do birds migrate? | > How do they find their way? | What is inflation?
What is inflation? | > How is it measured? | Who discovered penicillin? | > What did he study? | How does coffee grow?
How does coffee grow? | > Where? | How do vaccines work? | > Are they safe? | What is a haiku?
What is a haiku? | > How many syllables does it have? | How do spiders spin webs? | > How strong is their silk? | What is copper used for?
What is copper used for? | > Is it rare? | Why do leaves fall in autumn? | > And in spring? | How do clocks work?
How do clocks work? | > Who made the first one? | How is cheese made? | > How long does that take? | What is a comet?
What is a comet? | > Which one comes next? | How do glaciers move? | > How fast? | Why do cats purr?
Why do cats purr? | > Do lions do it too? | What is the capital of Peru? | > How many people live there? | How do bridges carry loads?
How do bridges carry loads? | > Which material? | What is sourdough? | > What about rye? | Who was Cleopatra?
"""
"""Twenty of five questions; with `>` go the words of the last question without."""


@pytest.mark.parametrize("conversation", CONVERSATIONS.strip().splitlines())
def test_no_topic_of_a_conversation_reaches_another(conversation: str) -> None:
    asked = [one.strip() for one in conversation.split("|")]
    bench = Bench([passage(CONVERSATIONS)])
    said: list[str] = []
    for one in asked:
        question = one.removeprefix("> ")
        query = carried(question, said, "papers", bench.searcher_for)
        if question == one:
            assert query is None
            topic = question
        else:
            assert query is not None
            added = query.removesuffix(f": {question}")
            assert set(added.split()) <= set(topic.lower().rstrip("?").split())
        said.append(question)
    assert len(said) == 5


def test_a_question_that_stands_alone_is_answered_as_if_it_were_the_first() -> None:
    history = (
        Message("user", "How well does copper conduct electricity?"),
        Message("assistant", "Well."),
    )
    question = "What are tides?"
    bench = Bench()
    alone = bench.ask(Question(question, Library.PAPERS.value))
    later = bench.ask(Question(question, Library.PAPERS.value, history=history))
    assert (later.text, later.rewritten_query) == (alone.text, None)
    assert [hit.n for hit in later.evidence] == [hit.n for hit in alone.evidence]
    assert codes(later) == codes(alone)
