"""Load: many streams at once, an event loop that stays free, and a server that stays as small as it was."""
