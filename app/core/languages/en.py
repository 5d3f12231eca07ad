"""English."""

from __future__ import annotations

from app.core.languages.language import Language

ENGLISH = Language(
    code="en",
    name="English",
    stemmer="english",
    function_words=(
        "a about an and any are as at be been but by can could did do does for from had has have"
        " how if in into is it its many much of on or should so some such than that the their them"
        " then there these they this those to was were what when where which who whom whose why"
        " will with would you your i me my we our us he she his her not no"
    ),
    connectives=(
        "after all also although am because before being between both doing during each further"
        " having here hers him however itself just may might more most must nor off once only"
        " other out over own same shall through too under until up upon very whether while"
    ),
    refusal="I don't have enough information in the provided documents to answer that.",
    greeting="Hello! Ask me anything about the documents in your libraries.",
    welcome="You're welcome! Ask away if there is more you would like to know.",
    greetings=(
        r"hi|hiya|hey|hello|howdy|greetings",
        r"good (?:morning|afternoon|evening|day|night)",
        r"how are you(?: doing)?(?: today)?|how(?:'s| is) it going|what'?s up",
        r"nice to meet you|bye|good ?bye|see you(?: later| soon)?",
    ),
    thanks=(
        r"(?:many )?thanks?(?: you| u)?(?: so much| very much| a lot| a bunch| a million| again)*",
        r"thanks?(?: you)?(?: so much| very much| a lot)? for (?:all )?(?:your|the) (?:help"
        r"|answers?|information|time)",
        r"thx|ty|cheers|much appreciated|i appreciate (?:it|that)",
    ),
)
