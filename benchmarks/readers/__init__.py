"""Whether a reader who has the answer of diagnose_run and no log finds the cause, with the tool's ranking and without.

    python -m benchmarks.readers draw DIR... --into FOLDER [--runs N] [--seed N] [--closed]
    python -m benchmarks.readers score FOLDER
    python -m benchmarks.readers prompts DIR... --into FOLDER [--runs N] [--seed N] [--closed]
    python -m benchmarks.readers pool DIR... [--replies FOLDER] [--keep]

`draw` takes labelled runs at random (`benchmarks.foreign.labels` says how DIR names them), whatever the tool says of
them, and asks for each over MCP as an agent would. It writes two folders that can be handed to a reader each by
itself:

- `hidden`: what was observed, without the ranking: no causes, next steps, quotes, nor notes that tell of them
- `shown`: the whole answer

Both hold `causes.md`, the list to answer with, and `questions.md`, which says how. Runs are called run-01, run-02, …
`key.jsonl`, beside the two folders, says what is right and how the tool ranks; a reader must not see it. The answer to
a run that the tool calls healthy is short, which `hidden` does not conceal.

`score` counts the answers in `answers*.jsonl` of each folder, one file per reader, beside the tool's own ranking.

`prompts` writes the prompts of `--reader` to labelled runs. A reader writes the reply to `prompts/run-NNN.txt` into
`replies/run-NNN.json` and sees nothing else. `pool` counts own ranking, reader and both together, and fits the weights
of the pool. `replies.jsonl` keeps own probabilities and replies, without labels; `pool` counts those by default.

- draw.py: which runs, under neutral names, the answers, and the folders; score.py: count
- prompts.py: the prompts of `--reader`, and what the replies are worth
"""
