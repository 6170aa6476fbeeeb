"""Symptoms that are seen in a training log: one file each, found by `checks.symptoms`."""
