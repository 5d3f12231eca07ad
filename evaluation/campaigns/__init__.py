"""Test promises with kills, damage and load: `evaluation.campaigns.NAME`."""
