"""The Papers page: the four papers' published numbers next to ours."""
