"""The FastAPI edge."""
