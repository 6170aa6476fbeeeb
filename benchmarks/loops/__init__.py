"""Runs with known faults, trained by loops that other authors wrote, who had not seen how the tool judges.

`python -m benchmarks.loops.vision --into FOLDER` and `python -m benchmarks.loops.language --into FOLDER` make them,
each in styles of its own, with a `labels.jsonl`; `benchmarks.faults` counts them with `--beside NAME=FOLDER`.
"""
