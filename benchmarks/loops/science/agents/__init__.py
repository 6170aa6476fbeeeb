"""Loops of reinforcement learning: an actor-critic, a generator rewarded by groups, Q-learning."""
