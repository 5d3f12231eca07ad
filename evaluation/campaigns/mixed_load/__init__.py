"""Many clients that ask, upload, list and delete at once: refusals are 503, and what was acknowledged is so afterwards."""
