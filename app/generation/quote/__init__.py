"""The passages' own sentences as an answer: quotes, calculations, comparisons, summaries."""
