"""The tasks, each with its runs."""
