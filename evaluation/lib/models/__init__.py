"""The study of real models: strategies, modes and prompts, as the product asks."""
