"""Greetings, refusals and suggestions in the language of the user."""
# ruff: noqa: RUF001

from __future__ import annotations

from dataclasses import replace

import pytest

from app.answer.intent import detect
from app.answer.service import translated
from app.answer.suggestions import questions_about
from app.answer.summaries import summary_wish
from app.core.languages import LANGUAGES
from app.core.types import REFUSAL, Answer, FinalEvent, Heading, ModelProfile, Question, TokenEvent
from tests.fakes.embedders import HashEmbedder
from tests.fakes.generators import FixedModels, ScriptedGenerator
from tests.stores import passage
from tests.unit.answer.bench import Bench, papers

GREETINGS = {
    "en": "Hello!",
    "de": "Guten Morgen",
    "fr": "Bonjour !",
    "es": "¡Hola!",
    "it": "Buongiorno",
    "pt": "Olá!",
    "nl": "Goedemorgen",
    "sv": "Hej hej",
    "tr": "Günaydın",
    "ru": "Добрый день!",
    "ar": "السلام عليكم",
    "zh": "你好！",
    "ja": "こんにちは",
    "ko": "안녕하세요!",
    "th": "สวัสดี",
}
THANKS = {
    "de": "Vielen Dank!",
    "it": "Grazie mille",
    "ru": "Спасибо!",
    "ja": "ありがとうございます。",
    "ko": "감사합니다",
    "th": "ขอบคุณ",
}


def test_every_language_is_greeted_in_it() -> None:
    replies = {code: detect(text) for code, text in GREETINGS.items()}
    assert {code: intent.reply for code, intent in replies.items()} == {
        code: language.greeting for code, language in LANGUAGES.items()
    }


@pytest.mark.parametrize("code", THANKS)
def test_thanks_are_answered(code: str) -> None:
    found = detect(THANKS[code])
    assert (found.kind, found.reply) == ("thanks", LANGUAGES[code].welcome)


@pytest.mark.parametrize(
    "text", ["Dag Hammarskjöld was who?", "Пока шла война, кто правил?", "감자"]
)
def test_words_that_only_look_like_a_greeting_stay(text: str) -> None:
    assert detect(text).text == text
    assert detect(text).kind == "question"


def test_the_refusal_is_in_the_language_of_the_question() -> None:
    asked = "Когда построили мост?"
    answer = Answer("1", REFUSAL, "abstained", Question(asked, "papers"), "none", "minilm")
    final = translated(FinalEvent(answer), asked)
    assert isinstance(final, FinalEvent)
    assert final.answer == replace(answer, text=LANGUAGES["ru"].refusal)
    assert translated(TokenEvent(REFUSAL), asked) == TokenEvent(LANGUAGES["ru"].refusal)
    assert translated(TokenEvent("Мост"), asked) == TokenEvent("Мост")
    assert translated(TokenEvent(REFUSAL), "42") == TokenEvent(REFUSAL)


@pytest.mark.parametrize(
    ("language", "question"),
    [
        ("de", "Was steht in „Brücken“ über „Hängeseile“?"),
        ("es", "¿Qué dice «Brücken» sobre «Hängeseile»?"),
        ("xx", "What does Brücken say about Hängeseile?"),
    ],
)
def test_a_heading_is_asked_for_in_its_language(language: str, question: str) -> None:
    document = replace(passage("", title="Brücken").document, language=language)
    assert questions_about(document, [Heading(0, 10, 1, "Hängeseile")], "") == [question]


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_summary_that_is_offered_is_understood(language: str) -> None:
    wish = summary_wish(LANGUAGES[language].summarise.format(title="Brücken"))
    assert wish is not None
    assert (wish.about, wish.explicit) == ("Brücken", True)


def test_a_question_in_another_language_is_translated_by_a_model_that_can() -> None:
    """Documents and embedder are English; small models do it badly and are not asked."""
    question = "Wie hoch ist der Schmelzpunkt von Kupfer?"
    english = "What is the melting point of copper?"
    english_only = HashEmbedder(256, languages=frozenset({"en"}))
    for parameters, searched in ((8e9, english), (0.5e9, None)):
        helper = ScriptedGenerator(english)
        model = ScriptedGenerator("The melting point of copper is 1085 degrees Celsius [1].")
        profile = ModelProfile("fake:scripted", "fake", parameters=parameters)
        bench = Bench(models=FixedModels(model, helper, profile=profile), embedder=english_only)
        answer = bench.ask(papers(question))
        assert answer.rewritten_query == searched
        assert len(helper.prompts) == (1 if searched else 0)
