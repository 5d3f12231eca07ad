"""What talks to a model or a socket."""
