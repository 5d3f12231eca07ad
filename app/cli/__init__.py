"""The typer edge."""
