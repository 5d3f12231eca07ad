"""How questions become searches."""
