"""Checks of a tokenized batch, found by `checks.symptoms`."""
