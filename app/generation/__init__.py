"""Passages to text: language, flags, quotes, prompts and the check, each over the one before."""
