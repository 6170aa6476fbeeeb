"""Runs with known faults, trained by loops that other authors wrote, who had not seen how the tool judges.

`python -m benchmarks.loops.vision --into FOLDER` makes them, and so do `benchmarks.loops.language`,
`benchmarks.loops.science`, `benchmarks.loops.industry`, `benchmarks.loops.studio` and `benchmarks.loops.dialogue`, each
in styles of its own, with a `labels.jsonl`; `benchmarks.faults` counts them with `--beside NAME=FOLDER`.
"""
