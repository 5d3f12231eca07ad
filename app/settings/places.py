"""Read the variables that say where the server listens and keeps things."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from app.core.data_folder import default_data_dir
from app.core.types import DefaultLibrary
from app.jobs.context import Lane
from app.jobs.options import LANES


class PlaceVariables(BaseSettings):
    """Addresses and directories."""

    model_config = SettingsConfigDict(
        env_file=".env",
        env_file_encoding="utf-8",
        extra="ignore",
        frozen=True,
        env_ignore_empty=True,
    )

    api_host: str = Field("127.0.0.1", description="address to listen on")
    api_port: int = Field(8001, ge=1, le=65535, description="port to listen on")
    data_dir: Path = Field(
        default_factory=default_data_dir,
        description="everything the server keeps; empty: ./var in a checkout or with a catalog in"
        " it, else the user's data folder",
    )
    chroma_persist_dir: Path | None = Field(
        None, description="directory of the Chroma store; empty: DATA_DIR/chroma"
    )
    originals_url: str = Field(
        "",
        description="s3://BUCKET/PREFIX?endpoint=http://HOST:PORT that keeps uploaded files (extra"
        " `shared`; keys: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY); empty: a directory in"
        " DATA_DIR",
    )
    originals_cache_mb: int = Field(
        2048, ge=1, description="files of the object store kept on this machine, the last used, MB"
    )
    database_url: str = Field(
        "",
        repr=False,
        description="postgresql://USER:PASSWORD@HOST/DATABASE that holds the catalog (extra"
        " `shared`); empty: SQLite in DATA_DIR",
    )
    search_url: str = Field(
        "",
        description="http://HOST:6333 of a Qdrant for vectors and words (extra `shared`), nodes"
        " with commas; empty: DATA_DIR",
    )
    search_api_key: str = Field("", repr=False, description="key that the search engine asks for")
    search_replicas: int = Field(
        1, ge=1, description="copies of every point in the search engine, made with a collection"
    )
    job_lanes: Annotated[tuple[Lane, ...], NoDecode] = Field(
        LANES,
        description="lanes of jobs that this process works in, comma-separated; none: other"
        " processes do (documind work; needs SEARCH_URL)",
    )
    default_library: DefaultLibrary = Field(
        "auto",
        description="library of a question that names none; `auto`: the one that holds your own"
        " documents, both if both do, else the samples in papers. What needs one library, such as"
        " an upload, then takes public",
    )
    app_env: Literal["development", "staging", "production"] = Field(
        "development",
        description="development, staging or production, which adds HSTS; diagnostics shows it",
    )
