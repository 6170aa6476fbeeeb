"""Fuzzing: every parser of the package gets damaged, spliced and hostile inputs, and has to answer or refuse them."""
