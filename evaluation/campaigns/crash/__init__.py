"""Random kills of the real server under load: what was acknowledged, and whether it is still there."""
