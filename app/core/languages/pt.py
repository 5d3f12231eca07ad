"""Portuguese."""

from __future__ import annotations

from app.core.languages.language import Language

PORTUGUESE = Language(
    code="pt",
    name="Portuguese",
    stemmer="portuguese",
    function_words=(
        "o a os as um uma uns umas de do da dos das em no na nos nas ao à aos às por pelo pela"
        " pelos pelas para com sem sobre entre até desde e ou mas que quem qual quais quando onde"
        " como porque porquê quê quanto quanta quantos quantas é são era eram foi foram ser sido"
        " está estão estava tem têm tinha ter há se seu sua seus suas lhe lhes ele ela eles elas"
        " eu nós você vocês não mais muito também já este esta estes estas esse essa esses essas"
        " isto isso aquele aquela num numa pode podem"
    ),
    abbreviations="sra srta exa pág págs núm a.c d.c p.ex",
    refusal="Os documentos disponíveis não contêm informação suficiente para responder a isso.",
    greeting="Olá! Pergunte o que quiser sobre os documentos das suas bibliotecas.",
    welcome="De nada! Pergunte à vontade se quiser saber mais.",
    what_is="O que é {}?",
    is_a=r" (?:é|são|era|eram|foi) (?:um|uma|o|a|os|as)",
    greetings=(r"ola|oi|bom dia|boa (?:tarde|noite)|tudo bem|como vai|adeus|tchau|ate logo",),
    thanks=(r"(?:muito |muita )?obrigad[oa](?: pela ajuda)?",),
)
