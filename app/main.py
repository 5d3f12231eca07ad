"""The application for `uvicorn app.main:app`, made when it is asked for."""

from __future__ import annotations

from fastapi import FastAPI

from app.api.app import create_app


def __getattr__(name: str) -> FastAPI:
    if name != "app":
        raise AttributeError(name)
    return create_app()
