"""The only place that constructs adapters: settings in, running services out."""

from app.bootstrap.services import Services, build_services

__all__ = ["Services", "build_services"]
