"""How much of a log is understood: columns, records, kinds of runs, settings.

    python -m benchmarks.reading [DIR...] [--closed] [--details]

Read are the samples of the tests, the examples, and every log of the folders named; each holds an `index.jsonl` or a
`labels.jsonl` (`benchmarks.foreign.labels` says how it names a log) with the `n_records` that a person counted in a
log, or the `task` of a run, if those are known. Each folder and half is a column. `--details` lists, of the open half
alone, what was not understood: names of columns and settings by how many logs have them, and the logs whose records or
kind are others than those of the index.

- reads.py: read the logs; tables.py: count
"""
