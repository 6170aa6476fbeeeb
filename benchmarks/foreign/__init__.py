"""How often the diagnosis is right on runs that others made and labelled.

    python -m benchmarks.foreign DIR... [--closed] [--misses]

Each DIR holds an `index.jsonl` or a `labels.jsonl` (`labels.py` says how it names a log), with one of three kinds of
label:

- `cause` and `acceptable`: the injected causes, and those that the same log justifies
- `right`, `near` and `label_kind`: the causes that are right, and those that a reader would not blame; a log whose kind
  is `unlabelled` is left out
- `known_problem`: `healthy`, `unknown` (left out) or a word for which `labels.py` lists the causes that it allows

A run folder is read as a user would hand it over, with the configuration that lies beside its log. A log that is
refused is not right. Each folder and half is a column; misses are listed of the open half alone.

- labels.py: what is right for each log; answers.py: diagnose it, and is it right; tables.py: count
"""
