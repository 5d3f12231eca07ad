"""Whether the passages hold what a sentence says, and the citations that say so."""
