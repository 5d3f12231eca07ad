"""Tests of what several machines share; `make shared-test` runs them in an environment of its own."""
