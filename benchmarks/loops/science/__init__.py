"""Small models of research outside of vision and language, trained with known faults and logged as such groups log.

- `run.py`: a run, its label, and how it is made; `journal.py`: what a loop tells the writers.
- `task.py`, `tasks/`: models with their data, losses and measures; `trainer.py`, `recipe.py`: the loop for them.
- `troubles/`: faults of the loop, the data and the machine; a task's own faults are fields of the task.
- `agents/`: loops of reinforcement learning; `writers/`: the styles of logs and settings; `runs/`: the catalogue.
"""
