"""Study the quality of search, answers and checks: `evaluation.studies.NAME`."""
