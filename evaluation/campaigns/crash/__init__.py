"""Kill the server at random under load; check acknowledged data."""
