"""Readings of levels and identities: how each outcome of the questions about them is seen."""
