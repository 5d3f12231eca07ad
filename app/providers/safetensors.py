"""Read the safetensors format into numpy, so that weights load without torch."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import TypedDict

import numpy as np

from app.core.errors import Unreadable
from app.core.types import FloatArray

_HEADER_LIMIT = 100 * 1024 * 1024  # the reference reader refuses larger headers too


class _Entry(TypedDict):
    dtype: str
    shape: list[int]
    data_offsets: list[int]


def read_float_tensors(path: Path) -> dict[str, FloatArray]:
    """Return the float32 tensors of a file by name, as read-only views of one buffer.

    Tensors of other types (position ids and the like) are left out.

    Args:
        path: A `.safetensors` file: 8 bytes header length (little endian), JSON header, data.

    Raises:
        Unreadable: The file is no safetensors file, or is shorter than its header says.

    References:
        https://github.com/huggingface/safetensors#format
    """
    content = path.read_bytes()
    try:
        (length,) = struct.unpack_from("<Q", content)
        if length > _HEADER_LIMIT:
            raise ValueError(f"header of {length} bytes")  # noqa: TRY301 - one translation for all that is wrong with the file
        header: dict[str, _Entry] = json.loads(content[8 : 8 + length])
        if not isinstance(header, dict):
            raise TypeError("the header is no object")  # noqa: TRY301 - the same
        data = memoryview(content)[8 + length :]
        return {
            name: np.frombuffer(data[slice(*entry["data_offsets"])], dtype="<f4").reshape(entry["shape"])
            for name, entry in header.items()
            if name != "__metadata__" and entry["dtype"] == "F32"
        }
    except (struct.error, ValueError, KeyError, TypeError) as exc:
        raise Unreadable(f"{path.name!r} is not a readable safetensors file ({exc}); install it again") from exc
