"""Evidence to text: prompts, context budget, extraction, citations, grounding."""
