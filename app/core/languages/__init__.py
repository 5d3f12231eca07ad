"""List the languages that the program knows; one module has one language."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from app.core.languages.ar import ARABIC
from app.core.languages.de import GERMAN
from app.core.languages.en import ENGLISH
from app.core.languages.es import SPANISH
from app.core.languages.fr import FRENCH
from app.core.languages.it import ITALIAN
from app.core.languages.ja import JAPANESE
from app.core.languages.ko import KOREAN
from app.core.languages.language import Language
from app.core.languages.nl import DUTCH
from app.core.languages.pt import PORTUGUESE
from app.core.languages.ru import RUSSIAN
from app.core.languages.sv import SWEDISH
from app.core.languages.th import THAI
from app.core.languages.tr import TURKISH
from app.core.languages.zh import CHINESE

LANGUAGES: Mapping[str, Language] = MappingProxyType(
    {
        language.code: language
        for language in (
            ENGLISH,
            GERMAN,
            FRENCH,
            SPANISH,
            ITALIAN,
            PORTUGUESE,
            DUTCH,
            SWEDISH,
            TURKISH,
            RUSSIAN,
            ARABIC,
            JAPANESE,
            CHINESE,
            KOREAN,
            THAI,
        )
    }
)
"""By code."""

DEFAULT = "en"
"""The language of a document whose language is unknown."""


def language_name(code: str) -> str:
    """Return a language's English name; the code itself if it is not listed."""
    return LANGUAGES[code].name if code in LANGUAGES else code
