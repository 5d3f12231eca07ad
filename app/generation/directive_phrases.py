"""Hold phrases of small words that address a model or a reader."""

from __future__ import annotations

import re

from app.generation.directive_words import Directive

_FROM_NOW = (
    r"(?:from (?:now|here|this (?:point|moment))(?: on| onwards?)?|henceforth"
    r"|(?:ab|von) (?:jetzt|nun|sofort|hier)(?: an)?|kunftig|fortan"
    r"|(?:a partir de|desde) (?:ahora|aqui|este momento)|en adelante|de ahora en adelante"
    r"|(?:a partir de|des) (?:maintenant|cet instant)|desormais|dorenavant)"
)
PHRASES: tuple[tuple[Directive, re.Pattern[str]], ...] = (
    (
        "role",
        re.compile(
            r"\b(?:du bist|sie sind|ihr seid|eres|usted es|tu es|vous etes|you are|you re) (?:\w+"
            r" ){0,2}"
            r"(?:jetzt|nun|sofort|kunftig|ahora|maintenant|desormais|now|no longer|nicht mehr|ya"
            r" no)\b"
            r"|\b(?:jetzt|nun|ahora|maintenant|now|desormais) (?:bist du|eres|seras|tu es|tu seras"
            r"|vous etes|vous serez|you are)\b"
            rf"|\A(?:\w+ )?{_FROM_NOW} (?:you\b|tu\b|vous\b|eres\b|usted\b|du\b|sie\b|te\b|\w+"
            r" (?:du|sie|vous)\b)"
        ),
    ),
    (
        "output",
        re.compile(
            rf"\b{_FROM_NOW} (?:answer|reply|respond|write|say|speak|act|tell|use|always|please"
            r"|end|begin|translate|never|do not)\b"
            r"|\b(?:dein|deine|deiner|tu|tus|ta|tes|votre|vos|your) (?:\w+ )?(?:antwort|antworten"
            r"|respuestas?|reponses?)\b"
        ),
    ),
    (
        "output",
        re.compile(
            r"\b(?:if|when|as|wenn|falls|sofern|da|als|si|cuando|como|puisque|comme) "
            r"(?:you are|you re|du|sie|eres|usted es|tu es|vous etes|you happen to be)\b"
            r"(?: \w+){0,5} (?:ai|llms?|assistants?|assistent|chatbot|asistente|ki|ia|sprachmodell"
            r"|language model"
            r"|modelo de lenguaje|modele de langage|bot|agent|modele|modell)\b"
        ),
    ),
)
"""What small words say, which have no meaning of their own here: read only in sentences that
address a reader or a machine."""
