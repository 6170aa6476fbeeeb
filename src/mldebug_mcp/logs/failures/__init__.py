"""Tracebacks and error messages in a log → failures, with their frames and ranks. `reader` puts them together."""
