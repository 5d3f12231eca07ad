"""Train the reader: one small model that reads a question or a claim beside a passage."""
