"""Storage: the catalog (the truth) and its projections."""
