"""Define the vocabulary of all packages: types, ports, errors, ids, text, trace."""
