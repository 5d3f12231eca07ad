"""Compose what answers questions: the query use case, checks, suggestions."""

from __future__ import annotations

from dataclasses import dataclass

from app.answer.checking import CheckService
from app.answer.journal import AnswerJournal
from app.answer.memory import ConversationMemory
from app.answer.research import Research
from app.answer.second_opinion import SecondOpinion
from app.answer.service import RAGService
from app.answer.speeds import ModelSpeeds
from app.answer.suggestions import Suggester
from app.answer.writing import AnswerWriter
from app.bootstrap.foundation import Foundation
from app.generation.grounding import Grounder
from app.generation.support import SupportJudge
from app.generation.tokens import TokenCalibrator


@dataclass(frozen=True, slots=True)
class AnswerParts:
    """The query use case with its parts."""

    rag: RAGService
    checker: CheckService
    second_opinion: SecondOpinion
    memory: ConversationMemory
    journal: AnswerJournal
    answer_writer: AnswerWriter
    grounder: Grounder
    speeds: ModelSpeeds
    suggester: Suggester


def compose_answering(base: Foundation) -> AnswerParts:
    """Compose what answers over open libraries; nothing is started."""
    settings, store, models = base.settings, base.store, base.models
    memory = ConversationMemory(store.conversations, settings.answer())
    journal = AnswerJournal(store.answers, settings.answer(), base.influences)
    writer = AnswerWriter(
        models.embedded.extractive, base.prompts, TokenCalibrator(), settings.generation()
    )
    grounder = Grounder(settings.generation(), base.prompts.instructions())
    speeds = ModelSpeeds(store.models)
    research = Research(
        store.catalog,
        base.libraries.searcher,
        writer,
        grounder,
        memory,
        speeds,
        settings.answer(),
        settings.retrieval().top_k,
        settings.fusion,
    )
    return AnswerParts(
        rag=RAGService(
            catalog=store.catalog,
            models=models,
            research=research,
            journal=journal,
            spans=base.spans,
        ),
        checker=CheckService(
            searcher_for=base.libraries.searcher,
            judge=SupportJudge(),
            options=settings.generation(),
            prompts=base.prompts.instructions(),
        ),
        second_opinion=SecondOpinion(models, base.prompts),
        memory=memory,
        journal=journal,
        answer_writer=writer,
        grounder=grounder,
        speeds=speeds,
        suggester=Suggester(
            catalog=store.catalog,
            searcher_for=base.libraries.searcher,
            extractive=models.embedded.extractive,
        ),
    )
