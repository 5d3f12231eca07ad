"""Words that instructions to a model are made of, in English, German, Spanish and French, by what they mean.

Lower case, accents and umlauts without their marks, as `disguises.plain` returns them; `*` stands for any ending. A word alone says
nothing: `directives` says which of these together, and how near each other, make an instruction.
"""

from __future__ import annotations

from enum import IntFlag, auto


class Means(IntFlag):
    """What a word may mean."""

    SET_ASIDE = auto()
    """to ignore, to forget; void, cancelled"""
    NOT = auto()
    HEED = auto()
    """to follow, to obey; valid, to apply: together with NOT the same as SET_ASIDE"""
    RULES = auto()
    """instructions, rules, prompt"""
    WORDS = auto()
    """orders, tasks, what was said: instructions only where more points to a model"""
    EARLIER = auto()
    ALL = auto()
    YOU = auto()
    """second person, pronouns and verbs"""
    MACHINE = auto()
    """assistant, chatbot"""
    SYSTEM = auto()
    """model, system, bot: a machine only where more says so"""
    SPEECH = auto()
    """language, artificial: makes a SYSTEM a MACHINE"""
    MUST = auto()
    SAY = auto()
    """to answer, to write; an answer"""
    ADVISE = auto()
    """to recommend, to promote"""
    READING = auto()
    """this text, to read, to process, the user"""
    ONLY = auto()
    """from now on, always, nothing but"""
    ROLE = auto()
    FREE = auto()
    """limits, restrictions, filters"""
    REVEAL = auto()
    SECRET = auto()
    ORDER = auto()
    """imperatives that tell what to say"""
    TASK = auto()
    """the same, where the form may also tell what a person does"""
    AND = auto()
    """after which a clause may open"""


WORDS: dict[Means, str] = {
    Means.SET_ASIDE: "ignor* disregard* forget bypass* overrid* overrul* discard* neglect* overlook* void voided invalid* null nullif*"
    " cancel* revok* rescind* supersed* obsolete suspend* withdrawn retract* abandon* drop throw toss dump scrap scrapped aside erase*"
    " delete wipe* undo unlearn* circumvent* dismiss* moot annul* skip unheeded"
    " ignorier* missacht* vergiss vergesst vergessen verwirf verwerf* verworf* ubergeh* ubergang* hinweg* beiseite umgeh* widerruf*"
    " aufgehob* aufheb* aufzuheb* ungultig* hinfallig* gegenstandslos* nichtig* obsolet* unbeacht* storniert* annullier* ausser"
    " vernachlassig* losch* verlern* pfeif*"
    " olvid* descart* desestim* desoye desoiga* desobede* desobedezc* anula* anulen anule nulo nula nulos nulas revoc* derog* omiso"
    " prescind* prescindir borra borre* omite omita* omitir* salta* abstraccion lado desech* inval* dejad"
    " oubli* neglig* desobei* ecart* nul nuls nulle nulles caduc* abstraction outre efface* supprim* contourn* rejet* revoqu*"
    " obsolete* cote laisse laissez delaiss* passe passez",
    Means.NOT: "not no never dont don cannot nothing nicht kein* nie niemals keinerlei nunca ningun* jamas ne n pas jamais aucun* nullement"
    " tampoco ohne sin sans without",
    Means.HEED: "follow* obey* heed* attention regard account apply applies valid effect force bind* binding listen* adher* comply"
    " complied act acted honou?r observed considered"
    " befolg* beacht* berucksichtig* folgen folge gelten gilt gultig* gehorch* halt halte halten anwend* bindend verbindlich massgeblich"
    " caso cuenta sigas sigan siga seguir* seguirse seguid* obede* respet* cumpl* valid* vigen* vigor aplic* atencion atiend* efecto"
    " compte suis suivre suivez suivies suivis obei* respect* appliqu* valable* vigueur cours tiens tenez",
    Means.RULES: "instruction* prompt prompts rules rule guideline* guidance directive* directions instructed"
    " anweisung* instruktion* vorgabe* regel regeln richtlinie* weisung* leitlinie* anleitung* systemprompt* eingabeaufforderung* direktive*"
    " instruccion* indicacion* directriz directrices regla reglas pauta pautas directiva directivas consigna consignas"
    " consigne* directives regle regles indication indications",
    Means.WORDS: "orders order commands command context conversation constraint* restriction* told said messages task tasks training"
    " programming settings policy policies safeguard* guardrail*"
    " befehl* anordnung* auftrag auftrage vorschrift* gesagt gesagte hinweis* aufgabe aufgaben bestimmung* kontext"
    " orden ordenes norma normas mandato* mandatos comando* dicho dicha dijeron tarea tareas contexto restriccion* ensenado"
    " ordre ordres commande commandes dit dits dite contexte tache taches contrainte*",
    Means.EARLIER: "previous* prior earlier above preceding foregoing former past initial original existing before hitherto given received"
    " beforehand until far already issued handed aforementioned system developer"
    " vorher* vorherig* vorangegangen* vorangehend* bisher* fruher* obig* zuvor oben vorstehend* ursprunglich* bestehend* bislang erhalten*"
    " gegeben* erteilt* genannt* vorig* vorab"
    " anterior* anteriormente previo* previa* previas antes arriba precedente* recibid* recibiste hasta dad* inicial* original* existente*"
    " precedent* precedemment anterieur* avant prealable* dessus recues recus donnees donne initial* existant* jusqu ici jusque",
    Means.ALL: "all any every everything each whatever alle alles allen aller jede* samtlich* todo* toda* cualquier* cualesquiera tout toute"
    " tous toutes quelconque*",
    Means.YOU: "you your yours yourself u dir dich dein deine* bist sollst wirst hast kannst musst darfst warst warest spielst wurdest"
    " antwortest handelst willst eres seras tu tus te ti usted ustedes fueras fueses estas puedes debes actuaras tendras"
    " toi ton ta tes vous votre vos etais etes seras dois",
    Means.MACHINE: "ai ais assistant assistants chatbot* llm llms gpt chatgpt copilot sprachmodell* ki assistent assistenten assistentin*"
    " asistente asistentes ia ias agi kis",
    Means.SYSTEM: "model models modell* modelo* modele* system systems systeme* sistema* agent agents agente* bot bots robot* roboter* machine*"
    " maschine* maquina* program programs programm* programa* programme* computer ordenador intelligence intelligenz inteligencia summariser*"
    " summarizer* software tool tools",
    Means.SPEECH: "language artificial artificielle artificiel sprach* kunstliche* lenguaje langage idioma automated automatic conversational"
    " automatique* automatico automatisch*",
    Means.MUST: "must should shall ought need needs required requested asked supposed expected obliged please kindly appropriate"
    " urged mandatory necessary would advised instructed best"
    " sollte* soll sollen muss mussen musste* darf durfen bitte gebeten aufgefordert verpflichtet angehalten hat haben"
    " debe* debera* deberia* tiene tienen favor obligad* conviene convendria ruega pide necesita* ha han haria"
    " doit doivent devra* devrait devraient faut faudrait priere prie prier veuillez tenu tenus tenue obligee* convient conviendrait merci"
    " invite* invitee* demande prie* estan",
    Means.SAY: "answer* reply replies respond* response* output* say says state states tell tells write* mention* recommend* summar*"
    " include end ends begin begins add append translate refuse conclude print claim claims confirm* assure* inform* finish* insert* speak*"
    " antwort* beantwort* schreib* sag sage sagen nenn nenne nennen empfehl* raten rat erwahn* zusammenfass* ausgeb* auszugeben gib gebe"
    " geben mitteil* mitzuteil* verrat* behaupt* bestatig* ausgabe* hinzufug* hinzuzufug* abschliess* beenden"
    " respond* respuesta* contest* escrib* diga digan decir di menciona* recomend* recomiend* aconsej* resum* afirm* confirm* anad* termin*"
    " conclu* indicar indique* inform*"
    " repond* repons* ecri* dire dis dites mentionn* recommand* conseill* affirm* ajout* termin* indiquer indique signal* preciser",
    Means.ADVISE: "recommend* promote* endors* advis* praise* advertis* urge empfehl* raten anpreis* bewerb* werben loben recomend* recomiend*"
    " aconsej* promocion* promuev* elogi* alab* recommand* conseill* promouvoir vanter encourag*",
    Means.READING: "text document* page passage paragraph article content file website read reads reading process* summar* user users visitor*"
    " customer* reader readers retriev*"
    " dokument* seite absatz abschnitt artikel lies liest lesen lesende* verarbeit* nutzer* benutzer* anwender* zusammenfass* leser* inhalt"
    " documento* texto textos pagina parrafo pasaje lea lee leen lean leer procese* procesa* usuario* lector* contenido articulo fragmento"
    " texte textes paragraphe lit lisent lire lisant traite* utilisateur* lecteur* contenu analys*",
    Means.ONLY: "now always only instead henceforth exclusively solely just nothing forever hereafter onwards onward"
    " jetzt nun kunftig* fortan nur bloss ausschliesslich immer stets stattdessen sofort lediglich einzig hinfort weiterhin"
    " ahora siempre solo solamente unicamente exclusivamente adelante momento"
    " maintenant desormais dorenavant toujours seulement uniquement exclusivement present partir",
    Means.ROLE: "pretend* roleplay* role persona character imagine suppose game act acts play plays playing impersonat* simulat* identity dan"
    " jailbreak* become behave embody picture"
    " stell stelle stellen tu tue rolle rollenspiel* spiel spiele spielen verhalte verhalten schlupf* figur benimm agiere handle charakter"
    " vorstellen spielst vorstellung ausgeben"
    " finge* fingir actua actue actuar imagina imaginate imagine* haz haga papel rol personaje juega juegue juguemos comporta* simula*"
    " supon supong* interpreta* encarna* juego jugar conviertete"
    " fais faites feins feignez agis agissez imagine* imaginez joue jouez jouons jouer role comporte* simule* personnage incarne* suppose*"
    " pretends jeu",
    Means.FREE: "limit* restriction* filter* unrestricted unfiltered uncensored rules limitless censorship boundaries ethic* moral* constraint*"
    " einschrankung* grenzen grenze beschrankung* regeln hemmung* zensur unbeschrankt* uneingeschrankt* filter*"
    " restriccion* reglas censura filtro* limite* etica"
    " regles filtre* censure entrave* contrainte* ethique",
    Means.REVEAL: "reveal* print* show* repeat* disclos* display* leak* tell give send output* share expose"
    " verrat* zeig* offenbar* offenleg* nenn* gib wiederhol* ausgeb* sende schick* preis*"
    " revel* muestra* muestre* mostrar imprim* repite repita* dime diga* comparte* enseña* ensena* envia* divulg* da"
    " montre* affiche* repete* dis dites donne* divulgu* envoie envoy* partage* devoil* communique*",
    Means.SECRET: "password* secret* confidential credential* prompt prompts key keys api hidden"
    " passwort* kennwort* geheim* zugangsdaten systemprompt* schlussel prompt vertraulich*"
    " contrasena* clave claves confidencial* credencial* oculta* oculto*"
    " passe cle cles confidentiel* identifiant* cachee* cache*",
    Means.ORDER: "antworte antwortet schreib schreibe schreibt sag sage nenne gib ubersetze fasse verrate zeige empfiehl erwahne fuge beende"
    " beginne sprich verwende wiederhole benutze lass rede behaupte"
    " escribe responde contesta di dime escriba responda conteste diga diles digale"
    " ecris ecrivez reponds repondez dis dites traduis traduisez resumez expliquez revelez montrez affichez recommandez mentionnez ajoutez"
    " terminez commencez parlez utilisez repetez",
    Means.TASK: "erklare traduce traduzca anade anada repite revele mencione resume explique revele montre affiche recommande mentionne ajoute"
    " termine commence parle utilise repete",
    Means.AND: "und y e et sondern stattdessen sino puis entonces luego dann bitte ahora maintenant jetzt ensuite mais pero aber",
}  # fmt: skip
