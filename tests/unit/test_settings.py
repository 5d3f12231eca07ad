from pathlib import Path

import pytest
from pydantic import ValidationError

from app.core.types import Library
from app.models.options import HostedOptions
from app.settings import Settings, unknown_names
from scripts.write_env_example import ROOT, configuration_page, env_example


def settings(**values: object) -> Settings:
    return Settings(_env_file=None, **values)  # type: ignore[arg-type]  # pydantic coerces


def test_the_environment_example_and_the_page_match_the_settings() -> None:
    assert (ROOT / ".env.example").read_text(encoding="utf-8") == env_example()
    assert (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8") == configuration_page()


def test_every_setting_says_what_it_is() -> None:
    assert [name for name, field in Settings.model_fields.items() if not field.description] == []


def test_lists_are_comma_separated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRUSTED_HOSTS", "a.example, b.example,")
    assert settings().trusted_hosts == ("a.example", "b.example")


def test_an_empty_variable_means_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_PORT", "")
    assert settings().api_port == 8001


def test_overlap_must_be_less_than_size() -> None:
    with pytest.raises(ValidationError, match="CHUNK_OVERLAP"):
        settings(chunk_size=200, chunk_overlap=200)


def test_names_that_only_look_like_settings_are_reported() -> None:
    assert unknown_names(
        {"OLLAMA_BASEURL": "x", "API_PORT": "1", "OLLAMA_HOST": "x", "HOME": "/"}
    ) == ["OLLAMA_BASEURL"]
    slips = {"TOP_K_RESULT": "3", "LLM_MODLE": "x", "REFUSAL_LANGUAGES": "en"}
    others = {"TOP_DIR": "/", "SHELL_SESSION": "x", "LANGUAGE": "en", "EDITOR": "vi"}
    assert unknown_names({**slips, **others}) == ["LLM_MODLE", "REFUSAL_LANGUAGES", "TOP_K_RESULT"]


def test_the_docmind_alias_of_the_git_sha_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DOCUMIND_GIT_SHA", raising=False)
    monkeypatch.setenv("DOCMIND_GIT_SHA", "abc")
    assert settings().documind_git_sha == "abc"


def test_keys_never_show_in_a_repr() -> None:
    assert "s3cret" not in repr(settings(api_key="s3cret", hosted_key="s3cret"))
    assert "s3cret" not in repr(settings(openai_api_key="s3cret"))


def test_one_host_has_the_names_of_openai_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.setenv("OPENAI_MODEL", "other")
    monkeypatch.setenv("HOSTED_MODEL", "chat-1")
    host = HostedOptions("http://127.0.0.1:1/v1", "k", "chat-1")
    for provider in ("auto", "openai", "openai_compatible"):
        hosts = settings(llm_provider=provider).providers().hosted
        assert hosts
        assert set(hosts) <= {"openai", "openai_compatible"}
        assert set(hosts.values()) == {host}
    assert unknown_names({"OPENAI_MODEL": "x", "HOSTED_MODDEL": "x"}) == ["HOSTED_MODDEL"]


def test_a_key_of_openai_goes_to_no_other_vendor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.setenv("HOSTED_MODEL", "large")
    hosts = settings(llm_provider="groq").providers().hosted
    assert hosts == {"groq": HostedOptions(model="large")}
    assert settings(embedding_provider="mistral").providers().hosted["mistral"].api_key == ""


def test_the_settings_of_a_vendor_name_their_successors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GROQ_API_KEY", "k")  # of another program, as long as nobody names groq
    assert settings(llm_provider="openai").hosted_key == ""
    with pytest.raises(ValidationError, match="GROQ_API_KEY is gone: set HOSTED_KEY instead"):
        settings(llm_provider="groq")
    assert settings(llm_provider="groq", hosted_key="mine").hosted_key == "mine"
    (tmp_path / ".env").write_text("EMBEDDING_PROVIDER=mistral\nMISTRAL_MODEL=large\n")
    with pytest.raises(ValidationError, match="MISTRAL_MODEL is gone: set HOSTED_MODEL instead"):
        Settings(_env_file=tmp_path / ".env")


def test_two_hosts_are_refused() -> None:
    with pytest.raises(ValidationError, match="are two hosts"):
        settings(llm_provider="groq", embedding_provider="google")
    assert settings(llm_provider="google", embedding_provider="google").providers().hosted
    assert settings(llm_provider="groq", embedding_provider="minilm").providers().hosted


@pytest.mark.parametrize(
    ("gib", "store", "vectors"),
    [
        (0, "chroma", 100_000),
        (8, "chroma", 1_048_576),
        (24, "chroma", 3_145_728),
        (8, "faiss", 17_895_697),
    ],
)
def test_dense_vectors_follow_memory_and_store(
    monkeypatch: pytest.MonkeyPatch, gib: int, store: str, vectors: int
) -> None:
    monkeypatch.setattr("app.settings._memory_bytes", lambda: gib * 1024**3)
    assert settings(vector_store=store).index().most_vectors(Library.PUBLIC) == vectors


def test_a_number_of_dense_vectors_holds_whatever_the_memory() -> None:
    options = settings(max_dense_vectors=500, papers_vector_store="faiss").index()
    assert options.most_vectors(Library.PAPERS) == 500
    assert options.most_vectors(Library.PUBLIC, papers=100) == 400


def test_what_papers_takes_is_counted_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.settings._memory_bytes", lambda: 4 * 1024**3)
    options = settings(public_vector_store="faiss").index()
    all_of_it = options.most_vectors(Library.PUBLIC)
    assert options.most_vectors(Library.PUBLIC, papers=1200) == all_of_it - 1200 * 2048 // 120
    assert options.store_of(Library.PAPERS) == "chroma"


@pytest.mark.parametrize("stage", ["development", "staging", "production"])
def test_the_stages_of_a_deployment(monkeypatch: pytest.MonkeyPatch, stage: str) -> None:
    monkeypatch.setenv("APP_ENV", stage)
    assert settings().app_env == stage


def test_an_order_that_is_gone_says_what_to_use() -> None:
    with pytest.raises(ValidationError, match="RERANK=sentences is gone: use late"):
        Settings(_env_file=None, rerank="sentences")
