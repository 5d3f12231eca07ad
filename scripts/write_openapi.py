"""Write openapi.json, the agreed contract, from the app: `python -m scripts.write_openapi`."""

from __future__ import annotations

import json
from pathlib import Path

from app.api.app import create_app
from app.settings import Settings

TARGET = Path(__file__).resolve().parent.parent / "openapi.json"


def document() -> str:
    """Return the OpenAPI document of the app with default settings, as stable text."""
    settings = Settings(_env_file=None)
    return json.dumps(create_app(settings).openapi(), indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def main() -> None:
    """Write the file."""
    TARGET.write_text(document(), encoding="utf-8")
    print(f"wrote {TARGET.name}")


if __name__ == "__main__":
    main()
