"""Dutch."""

from __future__ import annotations

from app.core.languages.language import Language

DUTCH = Language(
    code="nl",
    name="Dutch",
    stemmer="dutch",
    function_words=(
        "de het een en of maar want dus van voor met zonder op in aan bij uit naar over onder"
        " tussen door om te tot tegen na sinds als dan dat die deze dit wie wat waar wanneer"
        " waarom hoe welke welk hoeveel is zijn was waren wordt worden werd werden geworden heeft"
        " hebben had hadden er hij zij ze het wij we ik je jij u hun hen haar zijn mijn uw heet"
        " heette niet geen ook nog wel al meer zeer kan kunnen kon zou zouden moet moeten zich men"
        " daar hier dan toen"
    ),
    abbreviations="bijv bv enz ca nr blz o.a d.w.z m.b.t v.chr n.chr dhr mevr",
    refusal="De beschikbare documenten bevatten niet genoeg informatie om dat te beantwoorden.",
    greeting="Hallo! Vraag me gerust iets over de documenten in je bibliotheken.",
    welcome="Graag gedaan! Vraag gerust verder als je meer wilt weten.",
    what_is="Wat is {}?",
    is_a=r" (?:is|zijn|was|waren) (?:een|de|het)",
    greetings=(r"hallo|hoi|goeden?(?:morgen|middag|avond)|hoe gaat het|tot ziens|doei",),
    thanks=(r"(?:hartelijk )?dank je(?: wel)?|dank u(?: wel)?|bedankt|dankjewel",),
)
