"""Symptoms that an overfit probe shows, each with the causes that produce it, found by `checks.symptoms`."""
