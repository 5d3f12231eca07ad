"""A question to ranked evidence; pure apart from ports."""
