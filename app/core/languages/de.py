"""German."""

from __future__ import annotations

from app.core.languages.language import Language

GERMAN = Language(
    code="de",
    name="German",
    stemmer="german",
    nouns_are_capitalised=True,
    function_words=(
        "der die das den dem des ein eine einen einem einer eines und oder aber als wie was wer"
        " wen wem wessen wann wo wohin woher warum weshalb wieso welche welcher welches welchen"
        " welchem ist sind war waren wird werden wurde wurden worden hat haben hatte hatten sein"
        " seine seinen seiner seinem ihr ihre ihren ihrer ihrem es er sie wir ich man sich nicht"
        " kein keine auch noch nur so dass daß ob wenn weil heißt heißen hieß heisst gibt gab von"
        " vom zu zum zur mit nach bei beim aus auf in im an am für über unter durch um gegen ohne"
        " zwischen vor bis seit während kann können konnte könnten soll sollte muss müssen viel"
        " viele wieviel wieviele dieser diese dieses diesem diesen jener jene dort hier da dann"
        " denn doch mehr sehr etwa"
    ),
    abbreviations=(
        "bzw ca dgl evtl ggf inkl usw vgl z.b d.h u.a z.t s.o s.u o.ä nr abs str bd hrsg geb gest"
        " jh mio mrd"
    ),
    refusal="Die vorhandenen Dokumente enthalten nicht genug, um das zu beantworten.",
    greeting="Hallo! Frag mich gern etwas zu den Dokumenten in deinen Bibliotheken.",
    welcome="Gern geschehen! Frag einfach, wenn du noch etwas wissen möchtest.",
    what_is="Was ist {}?",
    is_a=r" (?:ist|sind|war|waren) (?:ein|eine|einer|eines|der|die|das)",
    greetings=(
        r"hallo|guten (?:tag|morgen|abend)|gute nacht|moin(?: moin)?|servus|gr(?:us|uss) (?:gott"
        r"|dich)",
        r"wie geht(?:'?s| es)(?: dir| ihnen)?|tschus+|auf wiedersehen|bis (?:bald|spater|dann)",
    ),
    thanks=(
        r"(?:vielen |herzlichen |besten |tausend )?dank(?: fur (?:die|deine|ihre) hilfe)?",
        r"danke(?: dir| ihnen)?(?: schon| sehr| vielmals)?(?: fur (?:die|deine|ihre) hilfe)?",
    ),
)
