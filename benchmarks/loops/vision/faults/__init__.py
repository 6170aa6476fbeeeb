"""Faults that are planted in a trainer before it starts: each is a function that makes one."""
