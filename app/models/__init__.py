"""Talk to models and sockets."""
