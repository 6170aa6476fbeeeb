#!/usr/bin/env bash
# RecBole logs a train loss of 0.70 or 9.10 for the same model and rows: it adds up the losses of the batches.
#
# Guess: `train loss` is the mean over an epoch, so that a model which knows nothing has ln 2 = 0.69 with BPR, whatever
#        the size of a batch.
# Seen:  it is the sum of the means of all batches. Batches a tenth of the size, or ten times the data, have a loss ten
#        times as high, in the log and in TensorBoard, for the same ranking. A loss far above ln 2 is then no sign of a
#        model that diverges, and two runs of other batches are not to be compared by it.
# With:  recbole 1.2.1, torch 2.13.0, numpy 1.26.4
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q --no-deps recbole==1.2.1 thop==0.1.1.post2209072238 2>/dev/null
packages="torch==2.13.0 numpy==1.26.4 pandas==2.3.3 scipy==1.17.1 scikit-learn==1.9.1 pyyaml==6.0.4 tqdm==4.70.1"
packages="$packages colorlog==4.7.2 colorama==0.4.4 tabulate==0.10.0 texttable==1.7.2 plotly==7.1.0 psutil==7.2.2"
"$folder/env/bin/pip" install -q $packages tensorboard==2.21.0 "setuptools<80" 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import logging
import pathlib
import random
import re

from recbole.config import Config
from recbole.data import create_dataset, data_preparation
from recbole.utils import get_model, get_trainer, init_seed

draw = random.Random(0)
rows = [f"u{user}\ti{item}" for user in range(100) for item in draw.sample(range(50), 10)]
pathlib.Path("tiny").mkdir()
pathlib.Path("tiny/tiny.inter").write_text("\n".join(["user_id:token\titem_id:token", *rows]))
for size in (2048, 256, 64):
    options = {
        "data_path": ".",
        "load_col": {"inter": ["user_id", "item_id"]},
        "eval_args": {"split": {"RS": [0.8, 0.1, 0.1]}, "order": "RO", "mode": "full"},
        "train_batch_size": size,
        "learning_rate": 0.0,
        "epochs": 1,
        "checkpoint_dir": "saved",
    }
    config = Config(model="BPR", dataset="tiny", config_dict=options)
    init_seed(0, True)
    dataset = create_dataset(config)
    train, valid, _ = data_preparation(config, dataset)
    trainer = get_trainer(config["MODEL_TYPE"], "BPR")(config, get_model("BPR")(config, train.dataset))
    heard = []
    handler = logging.Handler()
    handler.emit = lambda record: heard.append(record.getMessage())
    trainer.logger.addHandler(handler)
    trainer.logger.setLevel(logging.INFO)
    trainer.fit(train, valid, saved=False, verbose=True)
    trainer.logger.removeHandler(handler)
    line = re.sub("\x1b[^m]*m", "", next(line for line in heard if "train loss" in line))
    found = trainer.best_valid_result["ndcg@10"]
    print("batches of", size, "|", line.split(", ")[-1].rstrip("]"), "in", len(train), "batches | NDCG", found)
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
batches of 2048 | train loss: 0.6963 in 1 batches | NDCG 0.11
batches of 256 | train loss: 2.7909 in 4 batches | NDCG 0.11
batches of 64 | train loss: 9.0981 in 13 batches | NDCG 0.11
SEEN
