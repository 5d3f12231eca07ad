"""Italian."""

from __future__ import annotations

from app.core.languages.language import Language

ITALIAN = Language(
    code="it",
    name="Italian",
    stemmer="italian",
    function_words=(
        "il lo la i gli le l un uno una di del dello della dei degli delle a al allo alla ai agli"
        " alle da dal dallo dalla dai dagli dalle in nel nello nella nei negli nelle con su sul"
        " sullo sulla sui sugli sulle per tra fra e ed o ma che chi cui cosa quale quali quando"
        " dove come perché quanto quanta quanti quante è sono era erano fu furono essere stato"
        " stata stati ha hanno aveva avevano avere si suo sua suoi sue loro non più anche se"
        " questo questa questi queste quello quella quelli quelle ci ne mi ti molto può possono"
        " dell nell all dall sull c"
    ),
    abbreviations="es sig sig.ra dott ing avv pag pagg ecc a.c d.c",
    refusal="I documenti disponibili non contengono informazioni sufficienti per rispondere.",
    greeting="Ciao! Chiedimi quello che vuoi sui documenti delle tue biblioteche.",
    welcome="Prego! Chiedi pure se vuoi sapere altro.",
    what_is="Che cos'è {}?",
    is_a=r" (?:è|sono|era|erano|fu) (?:un|uno|una|il|lo|la|i|gli|le)",
    greetings=(
        r"ciao|buongiorno|buon giorno|buonasera|buona (?:sera|notte)|come (?:stai|sta|va)"
        r"|arrivederci",
    ),
    thanks=(r"grazie(?: mille| tante)?|molte grazie|ti ringrazio",),
)
