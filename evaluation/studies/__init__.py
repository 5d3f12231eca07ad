"""Studies: quality of search, answers and checks; `python -m evaluation.studies.NAME` writes a report."""
