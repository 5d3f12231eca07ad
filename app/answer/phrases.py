"""Define phrases per language that need no model to recognise.

Patterns match folded text: lower case, no accents, ß as s.
"""

from __future__ import annotations

from typing import Literal

Language = Literal["en", "es", "de", "fr"]
Pleasantry = Literal["greeting", "thanks"]

GREETINGS: dict[Language, tuple[str, ...]] = {
    "en": (
        r"hi|hiya|hey|hello|howdy|greetings",
        r"good (?:morning|afternoon|evening|day|night)",
        r"how are you(?: doing)?(?: today)?|how(?:'s| is) it going|what'?s up",
        r"nice to meet you|bye|good ?bye|see you(?: later| soon)?",
    ),
    "es": (
        r"hola|buenos dias|buenas(?: tardes| noches)?|que tal|como estas?",
        r"mucho gusto|adios|hasta (?:luego|manana)",
    ),
    "de": (
        r"hallo|guten (?:tag|morgen|abend)|gute nacht|moin(?: moin)?|servus|gr(?:us|uss) (?:gott|dich)",
        r"wie geht(?:'?s| es)(?: dir| ihnen)?|tschus+|auf wiedersehen|bis (?:bald|spater|dann)",
    ),
    "fr": (
        r"bonjour|bonsoir|bonne nuit|salut|coucou|ca va|comment (?:ca va|allez[- ]vous|vas[- ]tu)",
        r"enchante+|au revoir|a bientot",
    ),
}

THANKS: dict[Language, tuple[str, ...]] = {
    "en": (
        r"(?:many )?thanks?(?: you| u)?(?: so much| very much| a lot| a bunch| a million| again)*",
        r"thanks?(?: you)?(?: so much| very much| a lot)? for (?:all )?(?:your|the) (?:help|answers?|information|time)",
        r"thx|ty|cheers|much appreciated|i appreciate (?:it|that)",
    ),
    "es": (r"(?:muchas |mil )?gracias(?: por (?:todo|(?:tu|su|la) ayuda))?", r"te lo agradezco"),
    "de": (
        r"(?:vielen |herzlichen |besten |tausend )?dank(?: fur (?:die|deine|ihre) hilfe)?",
        r"danke(?: dir| ihnen)?(?: schon| sehr| vielmals)?(?: fur (?:die|deine|ihre) hilfe)?",
    ),
    "fr": (
        r"(?:un grand |mille )?mercis?(?: beaucoup| bien| infiniment)?(?: (?:pour|de) (?:votre |ton |l')aide)?",
    ),
}

FILLERS = (
    r"there|everyone|all|team|again|bot|assistant|documind|my friend|friend|ok|okay|great|perfect|cool|nice",
    r"awesome|wonderful|super",
    r"(?:that (?:was|is) )?(?:very |really |so )?helpful|that helps|you too|and",
    r"vale|perfecto|genial|de nuevo|y|alles klar|prima|toll|perfekt|nochmals|und|parfait|d'accord|tres bien|encore|et",
)
"""Words around a pleasantry that do not make it a question."""

REPLIES: dict[tuple[Pleasantry, Language], str] = {
    ("thanks", "en"): "You're welcome! Ask away if there is more you would like to know.",
    ("thanks", "es"): "¡De nada! Pregunta cuando quieras si necesitas algo más.",
    ("thanks", "de"): "Gern geschehen! Frag einfach, wenn du noch etwas wissen möchtest.",
    ("thanks", "fr"): "Avec plaisir\u00a0! N'hésitez pas si vous avez d'autres questions.",
    ("greeting", "en"): "Hello! Ask me anything about the documents in your libraries.",
    ("greeting", "es"): "¡Hola! Pregúntame lo que quieras sobre los documentos de tus bibliotecas.",
    ("greeting", "de"): "Hallo! Frag mich gern etwas zu den Dokumenten in deinen Bibliotheken.",
    (
        "greeting",
        "fr",
    ): "Bonjour\u00a0! Posez-moi vos questions sur les documents de vos bibliothèques.",
}
"""Canned answers; thanks come first, because "hi, thanks" deserves a you're welcome."""

LEAD_INS = (
    r"please|kindly|por favor|bitte|s'il (?:vous|te) plait",
    r"(?:could|can|would|will) you(?: please| kindly)* (?:tell me|let me know|inform me|help me (?:understand|find out))",
    r"(?:could|can|would|will) you (?:please|kindly)",
    r"i(?: would|'d) (?:like|love) to (?:know|ask|understand)|i (?:want|need) to know",
    r"(?:i was|i am|i'm) wondering|i wonder|do you (?:happen to )?know|may i ask|tell me|let me ask(?: you)?|quick question",
    r"(?:me )?(?:podrias?|puedes?) (?:decirme|contarme|explicarme)|me gustaria saber",
    r"(?:konnten|konnen) sie mir(?: bitte)? (?:sagen|erklaren|verraten)",
    r"(?:konntest|kannst) du mir(?: bitte)? (?:sagen|erklaren|verraten)|ich (?:mochte|wurde)(?: gerne?)? wissen",
    r"(?:pourriez|pouvez)[- ]vous (?:me )?(?:dire|expliquer)|(?:peux|pourrais)[- ]tu (?:me )?(?:dire|expliquer)|j'aimerais savoir",
)
"""What is polite and empty in front of a question."""

RECALLS = (
    r"what (?:have|did) (?:we|i)(?: already)? (?:(?:discuss|cover)(?:ed)?|(?:talk|chat)(?:t?ed)? about|ask(?:ed)?(?: you)?)",
    r"what (?:are|were) we (?:discussing|talking about)",
    r"what (?:was|were) (?:my|our) (?:first|last|previous|earlier) (?:questions?|topics?)",
    r"(?:summari[sz]e|recap|sum up) (?:our|this|the) (?:conversation|discussion|chat)",
    r"de que (?:hemos hablado|hablamos)|que hemos (?:discutido|comentado|tratado)",
    r"(?:woruber|was|wovon) haben wir (?:bisher |bis jetzt )?(?:gesprochen|besprochen|diskutiert|geredet)",
    r"(?:de quoi avons[- ]nous|qu'avons[- ]nous) (?:deja )?(?:parle|discute)|de quoi on a parle",
)
"""Questions about the conversation itself."""

RECALL_ENDINGS = (
    r"so far|until now|up to now|today|yet|before|earlier|together|here|hasta ahora|hoy|bisher|jusqu'a (?:present|maintenant)",
)

_WHOLE = r"(?:this|the|that|my|these|those|each|every|it)"
_DOCUMENT = (
    r"(?:(?:research|scientific|whole|entire|attached|uploaded|selected) )?"
    r"(?:paper|document|article|text|file|report|book|pdf|page|study|manual)s?"
)
SUMMARIES = (
    r"summari[sz]e|sum up|tl;?dr|zusammenfass(?:en|ung)?|fasse?(?: mir)?|resumez|resumir?|resume",
    r"(?:give|write|make|show)(?: me| us)? (?:an? |the )?(?:\w+ )?"
    r"(?:summary|overview|abstract)(?: of)?",
    r"(?:an? |the )?(?:\w+ )?(?:summary|overview) of",
    r"what (?:is|are) the (?:key|main|most important) (?:points|takeaways|findings|messages|ideas)"
    rf" (?:of|in|from)(?= {_WHOLE} {_DOCUMENT})",
)
"""How a request for a summary begins; what follows names the document or the topic."""

ABOUTS = (
    rf"what(?:'?s| is| are) (?:{_WHOLE} {_DOCUMENT}|this|it|that)(?P<title> .{{1,200}}?)?"
    r"(?: all)? about",
    rf"what(?:'?s| is| are) (?:the|this|my)(?P<named> .{{1,200}}?) {_DOCUMENT}(?: all)? about",
    rf"what does (?:{_WHOLE} {_DOCUMENT}|this) (?:say|cover|describe|deal with)",
)
"""Questions what a document is about."""

SUMMARY_LEADS = (
    rf"{_WHOLE}|{_DOCUMENT}|an?|me|us|for|please|briefly|der|die|das|den|dieses?|le|la|les|cet?",
    r"cette|el|este|called|titled|entitled|named|with|title|what (?:is|are) known",
    r"what the documents say|about|on|of",
    r"all|key|main|points?|findings?|contents?|papier|dokument|artikel|documento?|articulo",
)
"""Words between the request and what it names."""

SUMMARY_ENDINGS = (
    r"(?:in|with|using) (?:\w+ ){0,3}"
    r"(?:words?|sentences?|points?|bullets?|lines?|paragraphs?|terms|english)",
    r"please|briefly|for me|zusammen|bitte|paper|document|article",
)
"""Words behind what a request names."""
