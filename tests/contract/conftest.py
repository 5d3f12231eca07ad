"""Collects the contracts of packages that are installed."""

from importlib.util import find_spec

collect_ignore = [] if find_spec("llama_index") else ["test_llama_index_contract.py"]
