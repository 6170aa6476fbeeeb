"""Language-model and reinforcement-learning runs with faults planted in the training code."""
