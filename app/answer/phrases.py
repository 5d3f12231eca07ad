"""Define phrases per language that need no model to recognise.

Patterns match folded text: lower case, no accents, ß as s.
"""

from __future__ import annotations

from typing import Literal

from app.core.languages import LANGUAGES

Pleasantry = Literal["greeting", "thanks"]

PLEASANTRIES: dict[tuple[Pleasantry, str], tuple[str, ...]] = {
    **{("thanks", code): one.thanks for code, one in LANGUAGES.items()},
    **{("greeting", code): one.greetings for code, one in LANGUAGES.items()},
}
"""By kind and language; thanks come first, because "hi, thanks" deserves a you're welcome."""

FILLERS = (
    r"there|everyone|all|team|again|bot|assistant|documind|my friend|friend|ok|okay|great|perfect"
    r"|cool|nice",
    r"awesome|wonderful|super",
    r"(?:that (?:was|is) )?(?:very |really |so )?helpful|that helps|you too|and",
    r"vale|perfecto|genial|de nuevo|y|alles klar|prima|toll|perfekt|nochmals|und|parfait|d'accord"
    r"|tres bien|encore|et",
)
"""Words around a pleasantry that do not make it a question."""

LEAD_INS = (
    r"please|kindly|por favor|bitte|s'il (?:vous|te) plait",
    r"(?:could|can|would|will) you(?: please| kindly)* (?:tell me|let me know|inform me|help me"
    r" (?:understand|find out))",
    r"(?:could|can|would|will) you (?:please|kindly)",
    r"i(?: would|'d) (?:like|love) to (?:know|ask|understand)|i (?:want|need) to know",
    r"(?:i was|i am|i'm) wondering|i wonder|do you (?:happen to )?know|may i ask|tell me|let me"
    r" ask(?: you)?|quick question",
    r"(?:me )?(?:podrias?|puedes?) (?:decirme|contarme|explicarme)|me gustaria saber",
    r"(?:konnten|konnen) sie mir(?: bitte)? (?:sagen|erklaren|verraten)",
    r"(?:konntest|kannst) du mir(?: bitte)? (?:sagen|erklaren|verraten)|ich (?:mochte|wurde)(?:"
    r" gerne?)? wissen",
    r"(?:pourriez|pouvez)[- ]vous (?:me )?(?:dire|expliquer)|(?:peux|pourrais)[- ]tu (?:me"
    r" )?(?:dire|expliquer)|j'aimerais savoir",
)
"""What is polite and empty in front of a question."""

RECALLS = (
    r"what (?:have|did) (?:we|i)(?: already)? (?:(?:discuss|cover)(?:ed)?|(?:talk|chat)(?:t?ed)?"
    r" about|ask(?:ed)?(?: you)?)",
    r"what (?:are|were) we (?:discussing|talking about)",
    r"what (?:was|were) (?:my|our) (?:first|last|previous|earlier) (?:questions?|topics?)",
    r"(?:summari[sz]e|recap|sum up) (?:our|this|the) (?:conversation|discussion|chat)",
    r"de que (?:hemos hablado|hablamos)|que hemos (?:discutido|comentado|tratado)",
    r"(?:woruber|was|wovon) haben wir (?:bisher |bis jetzt )?(?:gesprochen|besprochen|diskutiert"
    r"|geredet)",
    r"(?:de quoi avons[- ]nous|qu'avons[- ]nous) (?:deja )?(?:parle|discute)|de quoi on a parle",
)
"""Questions about the conversation itself."""

RECALL_ENDINGS = (
    r"so far|until now|up to now|today|yet|before|earlier|together|here|hasta ahora|hoy|bisher"
    r"|jusqu'a (?:present|maintenant)",
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
