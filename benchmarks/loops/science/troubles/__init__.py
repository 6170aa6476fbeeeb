"""Faults planted in the loop, the data or the machine."""
