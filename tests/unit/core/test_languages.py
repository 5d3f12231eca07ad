"""Languages: which one a text is in, and how its words are stemmed."""
# ruff: noqa: RUF001

from __future__ import annotations

import re
from dataclasses import fields

import pytest

from app.core.languages import LANGUAGES, language_name, language_of
from app.core.sentences import sentence_spans
from app.core.text import content_or_all, tokenise

SENTENCES = {
    "en": "What is the oldest bridge of the city, and who built it?",
    "de": "Wie alt ist die Brücke in der Stadt, und wer hat sie gebaut?",
    "fr": "Quel est le plus vieux pont de la ville et qui l'a construit ?",
    "es": "¿Cuál es el puente más antiguo de la ciudad y quién lo construyó?",
    "it": "Qual è il ponte più antico della città e chi lo ha costruito?",
    "pt": "Qual é a ponte mais antiga da cidade e quem a construiu?",
    "nl": "Wat is de oudste brug van de stad, en wie heeft hem gebouwd?",
    "sv": "Vilken är den äldsta bron i staden, och vem har byggt den?",
    "tr": "Bu şehrin en eski köprüsü hangisi ve kim tarafından yapıldı?",
    "ru": "Какой мост в городе самый старый и кто его построил?",
    "ar": "ما هو أقدم جسر في المدينة ومن بناه؟",
    "zh": "这座城市最古老的桥是什么？",
    "ja": "この町で最も古い橋はどれですか。",
    "ko": "이 도시에서 가장 오래된 다리는 무엇입니까?",
    "th": "สะพานที่เก่าแก่ที่สุดของเมืองคืออะไร",
}


def test_every_language_is_told() -> None:
    assert {code: language_of(text) for code, text in SENTENCES.items()} == {
        code: code for code in LANGUAGES
    }


@pytest.mark.parametrize("text", ["", "42", "pH 7.4", "Tesla Edison", "ηλεκτρισμός"])
def test_what_cannot_be_told_is_unknown(text: str) -> None:
    assert language_of(text) == ""


def test_a_name_in_latin_letters_does_not_hide_the_language() -> None:
    assert language_of("Кто написал Liber servitoris?") == "ru"
    assert language_of("NASUWT是什么？") == "zh"


def test_spanish_names_do_not_make_english_spanish() -> None:
    assert language_of(f"Teams from {'Los Angeles and ' * 30} San Diego play in the league") == "en"


@pytest.mark.parametrize(
    ("language", "one", "other"),
    [
        ("de", "Häuser", "Haus"),
        ("es", "canciones", "canción"),
        ("fr", "nationalités", "nationalité"),
        ("it", "città", "citta"),
        ("pt", "livros", "livro"),
        ("nl", "bruggen", "brug"),
        ("sv", "bilarna", "bil"),
        ("tr", "köprüler", "köprü"),
        ("ru", "красными", "красный"),
        ("ar", "المدرسة", "مدرسة"),
    ],
)
def test_forms_of_a_word_share_a_token(language: str, one: str, other: str) -> None:
    assert tokenise(one, language) == tokenise(other, language)


def test_thai_is_searched_by_pairs_of_characters() -> None:
    assert tokenise("กรุงเทพ", "th") == ["กร", "รุ", "ุง", "งเ", "เท", "ทพ"]


def test_a_question_loses_the_function_words_of_both_languages() -> None:
    asked = tokenise("Wann wurde the Berlin gegründet?", "en")
    assert content_or_all(asked, "en", "de") == ["berlin", "gegrundet"]


@pytest.mark.parametrize("language", LANGUAGES.values(), ids=LANGUAGES)
def test_a_row_is_whole(language: object) -> None:
    """What every step reads is there, and expressions are ones."""
    empty = {
        *("stemmer", "abbreviations", "connectives", "nouns_are_capitalised", "pointing"),
        *("first_person", "reference_lists", "short_labels", "sums", "dated", "past", "beside"),
        *("says_is", "says_how"),
    }
    for field in fields(language):  # type: ignore[arg-type]
        value = getattr(language, field.name)
        assert value or field.name in empty
        for pattern in value if isinstance(value, tuple) else ():
            re.compile(pattern)
    for pattern, form in LANGUAGES[language.code].says_is.items():  # type: ignore[attr-defined]
        re.compile(pattern)
        assert "{thing}" in form
    for pattern, form in LANGUAGES[language.code].says_how.items():  # type: ignore[attr-defined]
        assert re.compile(pattern).groups == 1
        assert "{0}" in form


def test_sentences_end_as_their_language_ends_them() -> None:
    text = "Das gilt z.B. für Rom. Es liegt ca. 5 km entfernt. ما هو هذا؟ نعم هذا."
    assert [text[start:end] for start, end in sentence_spans(text)] == [
        "Das gilt z.B. für Rom.",
        "Es liegt ca. 5 km entfernt.",
        "ما هو هذا؟",
        "نعم هذا.",
    ]


def test_a_language_is_named_in_english() -> None:
    assert language_name("de") == "German"
    assert language_name("fi") == "fi"
