"""Tests of what is read of training scripts."""
