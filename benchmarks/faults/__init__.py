"""Training runs with known faults: really trained, logged as frameworks log, and diagnosed.

    python -m benchmarks.faults train [--subset]     train the runs that are missing (resumable)
    python -m benchmarks.faults report               diagnose them and print the tables
    python -m benchmarks.faults compare              ask other tools about the same runs

A run is a task (what is learned), a fault (what is wrong), a severity, a seed and a way of logging. Its label holds the
injected cause and the causes that the same observables would justify as well. Runs are split by task into a tuning and
a test part: numbers are fitted on one and reported on the other.

- experiment.py: what every kind of run has in common; loop.py with tasks.py and other_tasks.py: a plain loop; grpo.py,
  preference.py, agents.py: GRPO, DPO, PPO and DQN; trainer.py: the Trainer of Transformers
- faults/: what is wrong, one module for each kind of experiment or part of it
- runs.py, logs.py: which runs there are, and how they are logged; report.py: how often the diagnosis is right;
  compare.py, others.py: what other tools say; figures.py: the figures that the README shows
"""
