"""Tests of app.core."""
