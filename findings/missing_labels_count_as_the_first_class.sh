#!/usr/bin/env bash
# A DeepChem model that is right about each molecule has an accuracy of 0.70 where 60 percent of the labels are missing.
#
# Guess: a label that is missing has weight 0, so that it counts in no score, as it does not count in the loss.
# Seen:  `evaluate` takes a missing label for class 0, or for a target of 0.0, unless `use_sample_weights=True`. The
#        loader writes that 0 into the labels and 0 into the weights. So a model loses for each active molecule that
#        nobody measured: accuracy 0.70, AUC 0.81, and a squared error of 1.20 in place of 0. A model that calls them
#        inactive scores better, and tasks of one set differ by their gaps. By weights each score is perfect.
# With:  deepchem 2.8.0, scikit-learn 1.9.1, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q deepchem==2.8.0 scikit-learn==1.9.1 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import contextlib

import numpy

with contextlib.redirect_stdout(None):  # it prints that there is no PyTorch
    import deepchem

MOLECULES = [f"{'C' * (row // 2 + 1)}{'O' * (row % 2)}" for row in range(20)]
ACTIVE = numpy.arange(20) % 2
SCORES = {"classification": ("accuracy_score", "roc_auc_score"), "regression": ("mean_squared_error",)}


class Right(deepchem.models.Model):
    """A model that knows the truth about each molecule."""

    def __init__(self, task):
        self.model_dir, self.task = None, task

    def predict(self, dataset, transformers=()):
        if self.task == "regression":
            return 2.0 * ACTIVE[:, None]
        return numpy.stack([1 - ACTIVE, ACTIVE], 1)[:, None].astype(float)

    def get_task_type(self):
        return self.task

    def get_num_tasks(self):
        return 1


for missing in (0.0, 0.3, 0.6):
    known = (numpy.arange(20) // 2 + 0.5) / 10 >= missing
    for task, names in SCORES.items():
        with open("labels.csv", "w") as file:
            file.write("molecule,label\n")
            for molecule, active, measured in zip(MOLECULES, ACTIVE, known):
                label = active if task == "classification" else 2.0 * active
                file.write(f"{molecule},{label if measured else ''}\n")
        loader = deepchem.data.CSVLoader(["label"], deepchem.feat.CircularFingerprint(size=8), feature_field="molecule")
        rows = loader.create_dataset("labels.csv")
        metrics = [deepchem.metrics.Metric(getattr(deepchem.metrics, name)) for name in names]
        model = Right(task)
        print(task, f"| missing {missing}", "weights", int(rows.w.sum()), end="")
        for used in (False, True):
            scores = model.evaluate(rows, metrics, use_sample_weights=used)
            print(" | by weights" if used else " | evaluate", *(f"{name} {scores[name]:.2f}" for name in names), end="")
        print()
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
classification | missing 0.0 weights 20 | evaluate accuracy_score 1.00 roc_auc_score 1.00 | by weights accuracy_score 1.00 roc_auc_score 1.00
regression | missing 0.0 weights 20 | evaluate mean_squared_error 0.00 | by weights mean_squared_error 0.00
classification | missing 0.3 weights 14 | evaluate accuracy_score 0.85 roc_auc_score 0.88 | by weights accuracy_score 1.00 roc_auc_score 1.00
regression | missing 0.3 weights 14 | evaluate mean_squared_error 0.60 | by weights mean_squared_error 0.00
classification | missing 0.6 weights 8 | evaluate accuracy_score 0.70 roc_auc_score 0.81 | by weights accuracy_score 1.00 roc_auc_score 1.00
regression | missing 0.6 weights 8 | evaluate mean_squared_error 1.20 | by weights mean_squared_error 0.00
SEEN
