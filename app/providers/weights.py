"""Read weights in the safetensors format."""

from __future__ import annotations

from pathlib import Path

from safetensors import SafetensorError, safe_open

from app.core.errors import Unreadable
from app.core.types import FloatArray


def read_float_tensors(path: Path) -> dict[str, FloatArray]:
    """Return the float32 tensors of a `.safetensors` file by name.

    Tensors of other types (position ids and the like) are left out.

    Raises:
        Unreadable: The file is damaged or in another format.
    """
    try:
        with safe_open(path, framework="numpy") as file:
            floats = [name for name in file.keys() if file.get_slice(name).get_dtype() == "F32"]  # noqa: SIM118  # no mapping
            return {name: file.get_tensor(name) for name in floats}
    except SafetensorError as exc:
        raise Unreadable(
            f"{path.name!r} is not a readable safetensors file ({exc}); install it again"
        ) from exc
