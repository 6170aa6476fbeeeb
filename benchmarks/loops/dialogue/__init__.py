"""Tiny language-model and reinforcement-learning runs, each trained for real, with known faults."""
