"""Run → measurements: numbers with their noise, their onset and what was to be expected. None says good or bad.

A measurement is a deviation from an expectation that comes from settings, arithmetic or the run's own noise, so that it
holds for any vocabulary, size, optimizer, spelling or logging interval. What two questions need is a measurement; a
question never asks another one.
"""
