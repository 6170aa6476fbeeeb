"""Symptoms that are seen in a memory snapshot, found by `checks.symptoms`."""
