"""One runner for all long work: persistent, resumable, cancellable."""
