from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.answer.intent import detect, past_questions, without_politeness
from app.core.types import Message


@pytest.mark.parametrize(
    ("message", "kind", "opening"),
    [
        ("Hello", "greeting", "Hello"),
        ("hi there!", "greeting", "Hello"),
        ("  Good morning 👋 ", "greeting", "Hello"),
        ("Hey, how are you doing today?", "greeting", "Hello"),
        ("Thank you so much for your help!", "thanks", "You"),
        ("great, thanks a lot", "thanks", "You"),
        ("Hi, thanks!", "thanks", "You"),
        ("that was really helpful, thank you", "thanks", "You"),
        ("¡Hola! ¿Qué tal?", "greeting", "¡Hola"),
        ("muchas gracias", "thanks", "¡De nada"),
        ("Buenos días", "greeting", "¡Hola"),
        ("Guten Tag!", "greeting", "Hallo"),
        ("Vielen Dank", "thanks", "Gern"),
        ("Danke schön!", "thanks", "Gern"),
        ("Bonjour", "greeting", "Bonjour"),
        ("Merci beaucoup !", "thanks", "Avec plaisir"),
    ],
)
def test_whole_message_pleasantries_get_a_reply_in_their_language(
    message: str, kind: str, opening: str
) -> None:
    intent = detect(message)
    assert intent.kind == kind
    assert intent.reply.startswith(opening)


@pytest.mark.parametrize(
    "message",
    [
        "Hello, what is entropy?",
        "thanksgiving traditions",
        "Who wrote Hello, Dolly?",
        "hi-hat patterns in jazz",
        "What is the etymology of bonjour",
        "thanks to whom was penicillin discovered?",
        "ok",
        "Great Britain",
        "merci train",
        "all",
        "?!",
        "gracias a la vida singer",
    ],
)
def test_anything_more_than_a_pleasantry_is_a_question(message: str) -> None:
    assert detect(message).kind == "question"


@pytest.mark.parametrize(
    "message",
    [
        "What have we discussed?",
        "what have we talked about so far",
        "Hi, could you please tell me what did we discuss?",
        "Summarize our conversation.",
        "What was my first question?",
        "¿De qué hemos hablado hasta ahora?",
        "Worüber haben wir gesprochen?",
        "De quoi avons-nous parlé ?",
    ],
)
def test_look_backs_are_recognised(message: str) -> None:
    assert detect(message).kind == "recall"


@pytest.mark.parametrize(
    "message",
    [
        "What have we discussed in the literature about entropy?",
        "what did we ask of the senate in 1912",
    ],
)
def test_look_backs_must_be_the_whole_message(message: str) -> None:
    assert detect(message).kind == "question"


@pytest.mark.parametrize(
    ("message", "question"),
    [
        ("Hello, what is entropy?", "what is entropy?"),
        ("Hi there! Could you please tell me what entropy is?", "what entropy is?"),
        ("Please, please tell me who wrote Faust", "who wrote Faust"),
        ("Good morning. I would like to know how tides work", "how tides work"),
        ("Thanks! And what is its mass?", "And what is its mass?"),
        ("Can you explain entropy?", "Can you explain entropy?"),
        ("could you please explain entropy", "explain entropy"),
        ("Hola, ¿podrías decirme qué es la entropía?", "qué es la entropía?"),
        ("Hallo, kannst du mir bitte sagen, was Entropie ist?", "was Entropie ist?"),
        ("Bonjour, pouvez-vous me dire ce qu'est l'entropie ?", "ce qu'est l'entropie ?"),
        ("please", "please"),
        ("Hi-hats in jazz", "Hi-hats in jazz"),
        ("Hawaii", "Hawaii"),
        ("Heya Tama", "Heya Tama"),
    ],
)
def test_politeness_is_stripped_repeatedly(message: str, question: str) -> None:
    assert without_politeness(message) == question


_POLITE = st.sampled_from(
    ["Hi, ", "Hello! ", "please ", "could you tell me ", "Thanks! ", "I was wondering ", "tell me "]
)


@given(st.lists(_POLITE, max_size=5), st.text(max_size=40))
def test_stripping_is_idempotent_and_returns_the_end_of_the_message(
    polite: list[str], rest: str
) -> None:
    message = "".join(polite) + rest
    once = without_politeness(message)
    assert without_politeness(once) == once
    assert message.strip().endswith(once)
    assert bool(once) == bool(message.strip())


@given(st.text(max_size=60))
def test_any_text_has_an_intent(message: str) -> None:
    intent = detect(message)
    assert (intent.kind in ("greeting", "thanks")) == bool(intent.reply)


def test_past_questions_leave_out_pleasantries() -> None:
    history = (
        Message("user", "hello"),
        Message("assistant", "Hello!"),
        Message("user", "Please tell me what entropy is"),
        Message("assistant", "A measure [1]."),
        Message("user", "what have we discussed?"),
    )
    assert past_questions(history) == ["what entropy is"]
