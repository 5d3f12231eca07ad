"""Campaigns: kills, damage and load against promises; `python -m evaluation.campaigns.NAME` reports."""
