"""What a training script says by itself: its calls in order, read from Python's own syntax tree, never run."""
