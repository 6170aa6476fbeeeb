"""Trained runs with known faults, as a data set: see README.md."""
