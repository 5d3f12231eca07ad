"""Thin command lines over `app`."""
