"""Swedish."""

from __future__ import annotations

from app.core.languages.language import Language

SWEDISH = Language(
    code="sv",
    name="Swedish",
    stemmer="swedish",
    function_words=(
        "en ett den det de och eller men att som om för från med utan på i av till vid hos under"
        " över mellan mot efter före sedan när var vart varifrån varför hur vad vem vems vilken"
        " vilket vilka är var varit blev blir bli blivit har hade ha kan kunde ska skulle måste"
        " han hon vi jag du ni dem dess deras hans hennes sin sitt sina sig inte ingen inget också"
        " mycket många mer mest än så då där här detta denna dessa man hur"
    ),
    abbreviations="bl.a t.ex d.v.s dvs m.m osv kl ca nr s.k f.kr e.kr",
    refusal="De dokument som finns innehåller inte tillräckligt för att svara på det.",
    greeting="Hej! Fråga mig gärna om dokumenten i dina bibliotek.",
    welcome="Varsågod! Fråga gärna mer.",
    what_is="Vad är {}?",
    is_a=r" (?:är|var) (?:en|ett|den|det)",
    greetings=(r"hej(?: hej)?|hejsan|god (?:morgon|dag|kvall)|hur mar du|hej da",),
    thanks=(r"tack (?:sa mycket|for hjalpen)|stort tack",),
)
