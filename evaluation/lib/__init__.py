"""Parts that several programs share."""
