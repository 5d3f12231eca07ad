"""French."""

from __future__ import annotations

from app.core.languages.language import Language

FRENCH = Language(
    code="fr",
    name="French",
    stemmer="french",
    function_words=(
        "le la les l un une des du de d au aux à en dans par pour avec sans sur sous entre vers"
        " chez et ou mais donc ni car que qui quoi quel quelle quels quelles quand où comment"
        " pourquoi combien est sont était étaient fut furent être été a ont avait avaient avoir se"
        " s ce c cet cette ces son sa ses leur leurs il elle ils elles on nous vous je tu me mon"
        " ma mes te ton ta tes y ne n pas plus non très aussi si comme même lequel laquelle"
        " lesquels dont peut peuvent fait t qu j"
    ),
    abbreviations="mme mlle env éd p.ex av apr j.-c",
    refusal="Les documents disponibles ne contiennent pas assez d'informations pour répondre à"
    " cela.",
    greeting="Bonjour\u00a0! Posez-moi vos questions sur les documents de vos bibliothèques.",
    welcome="Avec plaisir\u00a0! N'hésitez pas si vous avez d'autres questions.",
    what_is="Qu'est-ce que {}\u00a0?",
    is_a=r" (?:est|sont|était|étaient|fut) (?:un|une|le|la|les|l')",
    greetings=(
        r"bonjour|bonsoir|bonne nuit|salut|coucou|ca va|comment (?:ca va|allez[- ]vous|vas[- ]tu)",
        r"enchante+|au revoir|a bientot",
    ),
    thanks=(
        r"(?:un grand |mille )?mercis?(?: beaucoup| bien| infiniment)?(?: (?:pour|de) (?:votre "
        r"|ton |l')aide)?",
    ),
)
