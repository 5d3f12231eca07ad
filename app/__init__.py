"""Serve retrieval-augmented answers from local libraries.

The layers are drawn in docs/architecture.md.
"""

import os

__version__ = "0.2.0"

# ONNX Runtime reports to its maker with the first session, and its own `disable_telemetry_events`
# comes too late: only this variable, set before its library is loaded, keeps it silent
# (docs/decisions/0030, tests/api/test_silence.py).
os.environ["ORT_DISABLE_TELEMETRY"] = "1"
