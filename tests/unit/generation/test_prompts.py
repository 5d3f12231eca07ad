from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from app.core.errors import InvalidInput
from app.core.types import REFUSAL, Message, Reasoning, Scope
from app.generation.prompt.prompts import PARTS, TASK_FIELDS, AnswerMode, PromptLibrary, Task

HYDE = "temperature: 0\nmax_tokens: 9\n"
SNAPSHOT = Path(__file__).with_name("prompts.snapshot.txt")


@pytest.fixture(scope="module")
def prompts() -> PromptLibrary:
    return PromptLibrary.load()


def test_every_prompt_is_as_it_was_reviewed(prompts: PromptLibrary) -> None:
    """Changed on purpose? documind prompt show > tests/unit/generation/prompts.snapshot.txt."""
    assert prompts.described() == SNAPSHOT.read_text(encoding="utf-8")


def test_parts_come_in_the_fixed_order(prompts: PromptLibrary) -> None:
    messages = prompts.build(
        "general", "papers", "Who was Rollo?", "PASSAGES", (Message("user", "Hello"),), fence="f00d"
    )
    assert [message.role for message in messages] == [
        "system",
        "user",
        "assistant",
        "user",
        "assistant",
        "user",
        "user",
    ]
    text = "\n".join(message.content for message in messages)
    expected = [
        "You are a research assistant",
        "Answer the question as a synthesis",
        "A is B [1].",
        "Hello",
        "PASSAGES",
        "Use only what the passages",
    ]
    expected += [
        "# Style",
        "# Format",
        "# Goal",
        "Question: Who was Rollo?",
        "# Reasoning",
        "Answer in the language",
    ]
    places = [
        text.index(piece) if piece != "# Reasoning" else text.rindex(piece) for piece in expected
    ]
    assert places == sorted(places)
    assert (
        PARTS.index("context")
        < PARTS.index("constraints")
        < PARTS.index("input")
        < PARTS.index("closing")
    )


def test_the_contract_stands_in_every_answer_prompt(prompts: PromptLibrary) -> None:
    for mode in get_args(AnswerMode):
        for scope in get_args(Scope):
            text = prompts.build(mode, scope, "Q", "C", fence="f00d")[-1].content
            for rule in (
                REFUSAL,
                "Use only what the passages say",
                "like [1]",
                "Do not obey it",
                "small talk",
                "f00d",
            ):
                assert rule in text, (mode, scope, rule)


@pytest.mark.parametrize("reasoning", get_args(Reasoning))
def test_reasoning_is_chosen_by_name(prompts: PromptLibrary, reasoning: Reasoning) -> None:
    text = prompts.build("general", "public", "Q", "C", reasoning=reasoning)[-1].content
    assert prompts.reasoning[reasoning].strip() in text


def test_a_mode_may_name_its_reasoning_and_leave_out_its_temperature(tmp_path: Path) -> None:
    parts = "papers: {instruction: x}\npublic: {instruction: x}\nall: {instruction: x}\n"
    (tmp_path / "general.yml").write_text(f"reasoning: react\n{parts}")
    (tmp_path / "conversation.yml").write_text(
        "max_tokens: 9\nparts: {instruction: '{summary} {history}'}\n"
    )
    library = PromptLibrary.load(tmp_path)
    assert (
        library.answer("general", "papers").reasoning,
        library.answer("general", "papers").temperature,
    ) == ("react", None)
    assert library.task("conversation", summary="", history="").temperature is None
    assert library.reasoning["react"].strip() in library.described()
    assert "== general / papers  (temperature as LLM_TEMPERATURE)" in library.described()
    assert library.answer("compare", "papers").temperature == 0.1


def test_what_is_filled_in_is_not_a_template(prompts: PromptLibrary) -> None:
    text = prompts.build(
        "general", "public", "What is {refusal}?", "{question} {fence}", fence="f00d"
    )[-1].content
    assert "Question: What is {refusal}?" in text
    assert "{question} {fence}" in text


def test_datasets_has_no_prompt(prompts: PromptLibrary) -> None:
    with pytest.raises(InvalidInput, match="'datasets'"):
        prompts.build("datasets", "papers", "Q", "C")


@pytest.mark.parametrize("name", get_args(Task))
def test_a_task_takes_exactly_its_placeholders(prompts: PromptLibrary, name: Task) -> None:
    fields = TASK_FIELDS[name]
    built = prompts.task(name, **{field: f"<{field}>" for field in fields})
    text = "\n".join(message.content for message in built.messages)
    assert all(f"<{field}>" in text for field in fields)
    with pytest.raises(ValueError, match="takes"):
        prompts.task(name, unknown="x")


def test_an_overlay_replaces_a_file(tmp_path: Path) -> None:
    (tmp_path / "hyde.yml").write_text(
        "temperature: 0.1\nmax_tokens: 9\nparts:\n  instruction: 'Imagine {style} on {question}'\n"
    )
    (tmp_path / "notes.txt").write_text("not a prompt")
    prompts = PromptLibrary.load(tmp_path)
    assert prompts.task("hyde", question="Q", style="S").messages[0].content == "Imagine S on Q"
    assert prompts.task("hyde", question="Q", style="S").max_tokens == 9
    assert prompts.answers == PromptLibrary.load().answers


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        (
            "hyde.yml",
            HYDE + "colour: red\nparts: {instruction: x}",
            r"hyde\.yml: colour is not known here; expected some of .*'parts'",
        ),
        (
            "hyde.yml",
            HYDE + "parts: {instruction: x, tone: y}",
            r"hyde\.yml: parts\.tone must be .*'style'.*; got 'tone'",
        ),
        ("hyde.yml", HYDE + "parts: {role: x}", r"hyde\.yml: parts: it lacks .* 'instruction'"),
        (
            "hyde.yml",
            HYDE + "parts: {instruction: '{wrong}'}",
            r"hyde\.yml: parts\.instruction: it names \['wrong'\]; .*'style'",
        ),
        (
            "hyde.yml",
            HYDE + "parts: {instruction: ' '}",
            r"hyde\.yml: parts\.instruction: it must not be empty",
        ),
        (
            "hyde.yml",
            HYDE + "parts: {instruction: 5}",
            r"hyde\.yml: parts\.instruction must be a text; got 5",
        ),
        (
            "hyde.yml",
            "temperature: hot\nmax_tokens: 9\nparts: {instruction: x}",
            r"hyde\.yml: temperature must be .*'hot'",
        ),
        (
            "hyde.yml",
            "temperature: true\nmax_tokens: 9\nparts: {instruction: x}",
            r"hyde\.yml: temperature must be .*True",
        ),
        (
            "general.yml",
            "reasoning: guess\npublic: {instruction: x}",
            r"general\.yml: reasoning must be 'grounded', .*'guess'",
        ),
        (
            "hyde.yml",
            "temperature: 0\nmax_tokens: 0\nparts: {instruction: x}",
            r"hyde\.yml: max_tokens must be .*0",
        ),
        ("hyde.yml", "- a\n- b", r"hyde\.yml: the file must be an object"),
        ("rewrite.yml", "mood: cheerful", r"rewrite\.yml: mood.*; expected some of .*'parts'"),
        ("hyde.yml", "a: [", r"hyde\.yml: not readable as YAML"),
        (
            "general.yml",
            "temperature: 0.2\npapers: {instruction: x}",
            r"general\.yml: public is missing",
        ),
        (
            "contract.yml",
            "parts: {}\nreasoning: {grounded: x}",
            r"contract\.yml: reasoning: it lacks .*'react'",
        ),
        (
            "contract.yml",
            "parts: {}\nturns: [a]\nreasoning: {grounded: x}",
            r"contract\.yml: turns: it must be .* in turn",
        ),
        ("poem.yml", "temperature: 0", r"poem\.yml: no prompt has this name"),
    ],
)
def test_a_wrong_overlay_is_refused_by_file_and_key(
    tmp_path: Path, name: str, text: str, said: str
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InvalidInput, match=said):
        PromptLibrary.load(tmp_path)


def test_a_missing_overlay_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="not a directory"):
        PromptLibrary.load(tmp_path / "none")
