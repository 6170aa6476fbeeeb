#!/usr/bin/env bash
# A model whose outputs are NaN has an accuracy of 1.0 in lm-eval where the right choice is always the first.
#
# Guess: NaN likelihoods give NaN, an error, or an accuracy at chance: one in four for four choices.
# Seen:  the answer is the `argmax` of the likelihoods, which is the first NaN. A task whose data lists the right answer
#        first, as TruthfulQA's mc1 does, has 1.0, and one whose answers are spread evenly has chance. Constant
#        likelihoods, and -inf, do the same. One NaN among numbers wins, too: a choice that overflows is the answer. So
#        a benchmark jumps as the weights break. A random model has 0.25 in both tasks.
# With:  lm-eval 0.4.13, datasets 5.2.0, torch 2.13.0, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q lm-eval==0.4.13 datasets==5.2.0 torch==2.13.0 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import json

import numpy
from lm_eval import simple_evaluate
from lm_eval.api.model import LM
from lm_eval.tasks import TaskManager

TASK = """task: {name}
dataset_path: json
dataset_kwargs: {{data_files: {{test: {name}.jsonl}}}}
test_split: test
output_type: multiple_choice
doc_to_text: "{{{{question}}}}"
doc_to_choice: choices
doc_to_target: right
metric_list: [{{metric: acc}}, {{metric: acc_norm}}]
"""
for name, right in (("right_first", lambda row: 0), ("spread", lambda row: row % 4)):
    with open(f"{name}.yaml", "w") as file:
        file.write(TASK.format(name=name))
    with open(f"{name}.jsonl", "w") as file:
        for row in range(400):
            choices = [f"choice {number}" for number in range(4)]
            file.write(json.dumps({"question": f"q{row}", "choices": choices, "right": right(row)}) + "\n")


class Likelihoods(LM):
    def __init__(self, make):
        super().__init__()
        self.make = make

    def loglikelihood(self, requests):
        return [(float(self.make(request.args[1])), False) for request in requests]

    def loglikelihood_rolling(self, requests):
        raise NotImplementedError

    def generate_until(self, requests):
        raise NotImplementedError


draw = numpy.random.default_rng(0)
for name, make in {
    "NaN": lambda choice: numpy.nan,
    "one number": lambda choice: -1.0,
    "-inf": lambda choice: -numpy.inf,
    "NaN for choice 2 alone": lambda choice: numpy.nan if "2" in choice else -draw.random(),
    "random": lambda choice: -draw.random(),
}.items():
    tasks = TaskManager(include_path=".")
    found = simple_evaluate(Likelihoods(make), tasks=["right_first", "spread"], task_manager=tasks, bootstrap_iters=0)
    print(name, end="")
    for task in ("right_first", "spread"):
        scores = found["results"][task]
        print(f" | {task} acc {scores['acc,none']:.2f} acc_norm {scores['acc_norm,none']:.2f}", end="")
    print()
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
NaN | right_first acc 1.00 acc_norm 1.00 | spread acc 0.25 acc_norm 0.25
one number | right_first acc 1.00 acc_norm 1.00 | spread acc 0.25 acc_norm 0.25
-inf | right_first acc 1.00 acc_norm 1.00 | spread acc 0.25 acc_norm 0.25
NaN for choice 2 alone | right_first acc 0.00 acc_norm 0.00 | spread acc 0.25 acc_norm 0.25
random | right_first acc 0.24 acc_norm 0.24 | spread acc 0.23 acc_norm 0.23
SEEN
