"""The catalog on SQLite: the truth that every projection is made from. It knows none of them."""
