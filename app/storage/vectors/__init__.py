"""The dense projection: vectors, searched by cosine distance."""
