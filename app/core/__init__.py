"""The vocabulary every other package speaks: types, ports, errors, text, ids, vectors, trace."""
