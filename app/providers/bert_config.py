"""Read the shape of a BERT model from its configuration."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from app.core.errors import Unreadable

BERT_POSITIONS = 512
"""Of a BERT model whose configuration names none."""


@dataclass(frozen=True, slots=True)
class BertShape:
    """A BERT encoder's parameters besides the weights."""

    layers: int
    heads: int
    epsilon: float
    positions: int = BERT_POSITIONS
    """Longest text, in tokens: the rows of the position embedding."""

    @classmethod
    def from_config(cls, path: Path) -> BertShape:
        """Read the `config.json` of a BERT model.

        Raises:
            Unreadable: The file is missing or describes another architecture.
        """
        try:
            config = json.loads(path.read_bytes())
            if config["model_type"] != "bert" or config["hidden_act"] != "gelu":
                raise ValueError(  # noqa: TRY301
                    f"model_type {config['model_type']!r} with {config['hidden_act']!r}"
                )
            return cls(
                int(config["num_hidden_layers"]),
                int(config["num_attention_heads"]),
                float(config["layer_norm_eps"]),
                int(config.get("max_position_embeddings", BERT_POSITIONS)),
            )
        except (OSError, ValueError, KeyError, TypeError) as exc:
            raise Unreadable(
                f"{str(path)!r} does not describe a BERT model with exact GELU ({exc})"
            ) from exc
