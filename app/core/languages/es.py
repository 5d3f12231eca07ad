"""Spanish."""

from __future__ import annotations

from app.core.languages.language import Language

SPANISH = Language(
    code="es",
    name="Spanish",
    stemmer="spanish",
    function_words=(
        "el la los las lo un una unos unas de del al a en con por para sin sobre entre hasta"
        " desde hacia según y e o u ni pero como qué que quién quiénes cuál cuáles cuándo cuánto"
        " cuánta cuántos cuántas dónde cómo quien quienes cual cuales cuando cuanto donde es son"
        " era eran fue fueron ser sido está están estaba ha han había habían se su sus le les lo"
        " me mi te tu nos nuestro no sí si más muy también ya este esta estos estas ese esa esos"
        " esas aquel aquella esto eso porque tiene tienen puede pueden hay otro otra"
    ),
    abbreviations="ej sr sra srta ud uds pág págs núm aprox ee.uu a.c d.c p.ej",
    refusal="Los documentos disponibles no contienen información suficiente para responder a eso.",
    greeting="¡Hola! Pregúntame lo que quieras sobre los documentos de tus bibliotecas.",
    welcome="¡De nada! Pregunta cuando quieras si necesitas algo más.",
    what_is="¿Qué es {}?",
    is_a=r" (?:es|son|era|eran|fue) (?:un|una|el|la|los|las)",
    greetings=(
        r"hola|buenos dias|buenas(?: tardes| noches)?|que tal|como estas?",
        r"mucho gusto|adios|hasta (?:luego|manana)",
    ),
    thanks=(
        r"(?:muchas |mil )?gracias(?: por (?:todo|(?:tu|su|la) ayuda))?",
        r"te lo agradezco",
    ),
)
