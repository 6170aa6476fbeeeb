#!/usr/bin/env bash
# Optuna's median pruner lets a run go on to its end whose loss exploded after one good value.
#
# Guess: a trial whose loss is 1e9 at a step where the median of others is 0.1 is pruned there.
# Seen:  the pruner holds the best value that the trial ever had, not the one just reported, against the median. A
#        good first value keeps the trial for as long as the others have not passed it. Pruners that halve look at the
#        value itself and prune it.
# With:  optuna 5.0.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q optuna==5.0.0 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import optuna

optuna.logging.disable_default_handler()


def objective(trial):
    for step in range(10):
        loss = 1 / (step + 1) if trial.number < 5 else (0.05 if step == 0 else 1e9)
        trial.report(loss, step)
        if trial.should_prune():
            raise optuna.TrialPruned
    return loss


for pruner in (
    optuna.pruners.MedianPruner(n_startup_trials=3),
    optuna.pruners.SuccessiveHalvingPruner(min_resource=1, reduction_factor=2),
):
    study = optuna.create_study(pruner=pruner)
    study.optimize(objective, n_trials=6)
    exploded = study.trials[-1]
    print(type(pruner).__name__, exploded.state.name, "after", len(exploded.intermediate_values), "values")
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
MedianPruner COMPLETE after 10 values
SuccessiveHalvingPruner PRUNED after 2 values
SEEN
