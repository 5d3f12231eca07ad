"""One module per schema version, never changed after a release."""
