"""What libraries do with what they are given is seen in a script, and healthy neighbours of each are not accused."""

from __future__ import annotations

from pathlib import Path

import pytest

from mldebug_mcp import inspect_script
from tests.script.test_kinds import HEAD, rules_of

LOOP = """
net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
loader = DataLoader(rows, batch_size=16, shuffle=True)
"""
STEP = """
    loss = F.cross_entropy(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
AUTOCAST = (
    LOOP
    + """
opt = torch.optim.SGD(net.parameters(), lr=0.1)
with torch.autocast("cuda", dtype=torch.bfloat16):  # here
    for x, y in loader:
        loss = F.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
"""
)
RESUMED = (
    LOOP
    + """
opt = torch.optim.SGD(net.parameters(), lr=0.1)
saved = torch.load("last.pt")
net.load_state_dict(saved["net"])
opt.load_state_dict(saved["opt"])
warm = torch.optim.lr_scheduler.LinearLR(opt, 0.1, 1.0, 500)  # here
sched = torch.optim.lr_scheduler.SequentialLR(
    opt, [warm, torch.optim.lr_scheduler.CosineAnnealingLR(opt, 9500)], [500]
)
sched.load_state_dict(saved["sched"])
for x, y in loader:"""
    + STEP
    + "    sched.step()\n"
)
MADE = """warm = torch.optim.lr_scheduler.LinearLR(opt, 0.1, 1.0, 500)  # here
sched = torch.optim.lr_scheduler.SequentialLR(
    opt, [warm, torch.optim.lr_scheduler.CosineAnnealingLR(opt, 9500)], [500]
)
"""
PLATEAU = """
separator = nn.Conv1d(1, 1, 3, padding=1)
loader = DataLoader(rows, batch_size=16, shuffle=True)
opt = torch.optim.Adam(separator.parameters(), lr=1e-3)
sched = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, patience=3)
for epoch in range(50):
    total = 0.0
    for mixed, clean in loader:
        loss = -si_sdr(separator(mixed), clean).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item()
    sched.step(total / len(loader))  # here
"""
RAY = """
from ray import tune
def train(config):
    for step in range(100):
        tune.report({"loss": 1 / (step + 1), "accuracy": step / 100})
goal = tune.RunConfig(stop={"loss": 0.1, "training_iteration": 50})  # here
tune.Tuner(train, tune_config=tune.TuneConfig(metric="loss", mode="min"), run_config=goal).fit()
"""
OPTUNA = """
import optuna
from sklearn.metrics import log_loss
def objective(trial):
    net = fitted(trial.suggest_float("lr", 1e-5, 1e-1, log=True))
    return log_loss(truth, net.predict_proba(held_out))
study = optuna.create_study(direction="maximize")
study.optimize(objective, n_trials=20)  # here
"""
SMOOTHED = """
from transformers import Trainer, TrainingArguments
args = TrainingArguments(
    "out", eval_strategy="epoch", save_strategy="epoch", load_best_model_at_end=True,
    label_smoothing_factor=0.1,  # here
)
Trainer(model=net, args=args, train_dataset=rows, eval_dataset=held_out).train()
"""
BATCH_SCORES = """
from sklearn.metrics import roc_auc_score
net = nn.Linear(8, 1)
def evaluate(val_loader):
    net.eval()
    total = 0
    with torch.no_grad():
        for x, y in val_loader:
            total += roc_auc_score(y.numpy(), net(x).squeeze(1).numpy())  # here
    return total / len(val_loader)
"""
CONTRASTED = """
net = nn.Linear(8, 8)
def info_nce(u, v):
    scores = u @ v.T / 0.07
    return F.cross_entropy(scores, torch.arange(len(u)))
train_loader = DataLoader(rows, batch_size=512, shuffle=True, drop_last=True)
val_loader = DataLoader(held_out, batch_size=64)  # here
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for epoch in range(9):
    for x, y in train_loader:
        loss = info_nce(net(x), net(y))
        opt.zero_grad()
        loss.backward()
        opt.step()
    with torch.no_grad():
        losses = [info_nce(net(x), net(y)).item() for x, y in val_loader]
    print(sum(losses) / len(losses))
"""
COX = """
from pycox.models import CoxPH
model = CoxPH(net, tt.optim.Adam(0.01))
log = model.fit(x, y, 128, 50, val_data=(xv, yv))  # here
"""
SINGLE = """
net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
criterion = nn.CrossEntropyLoss(weight=torch.tensor([1.0, 5.0, 10.0]))  # here
loader = DataLoader(rows, batch_size=1, shuffle=True)
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for x, y in loader:
    loss = criterion(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
STREAM = """
from datasets import load_dataset
net = nn.Linear(8, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
stream = load_dataset("rows", split="train", streaming=True).shuffle(seed=1, buffer_size=1000)
for epoch in range(3):
    for row in stream:  # here
        loss = F.cross_entropy(net(row["x"]), row["y"])
        opt.zero_grad()
        loss.backward()
        opt.step()
"""
REPEATED = """
from datasets import load_dataset
rows = load_dataset("rows", split="train", streaming=True).shuffle(seed=1).repeat(3)  # here
"""
DICE = """
from monai.metrics import DiceMetric
dice = DiceMetric(include_background=False)  # here
files = lesion_scans + healthy_scans
"""
OBSERVED = """
from torch.ao.quantization import prepare_qat
net = prepare_qat(nn.Sequential(nn.Linear(8, 3)).train())
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(3):
    net.train()
    for x, y in loader:
        loss = F.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    net.eval()
    with torch.no_grad():
        for x, y in val_loader:
            right += (net(x).argmax(1) == y).sum().item()  # here
"""
RADAM = """
net = nn.Linear(8, 8)
opt = torch.optim.RAdam(net.parameters(), lr=1e-2)  # here
for x, y in loader:
    loss = F.mse_loss(net(x), y, reduction="sum")
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
CATBOOST = """
from catboost import CatBoostClassifier
model = CatBoostClassifier(iterations=100, depth=6, l2_leaf_reg=3)  # here
"""
COCO = """
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval
annotations = []
for image, boxes in enumerate(truth):
    for box in boxes:
        annotations.append({
            "id": len(annotations),  # here
            "image_id": image, "category_id": 1, "bbox": box, "area": box[2] * box[3], "iscrowd": 0,
        })
coco.dataset = {"images": images, "annotations": annotations, "categories": kinds}
COCOeval(coco, coco.loadRes(found), "bbox").evaluate()
"""
GRAPHS = """
from torch_geometric.data import Data
graphs = [Data(x=x, edge_index=edges, class_index=kind) for x, edges, kind in rows]  # here
net = Graphs()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for batch in loader:
    loss = F.cross_entropy(net(batch.x, batch.edge_index, batch.batch), batch.class_index)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
TWO = """
import lightning as L
class Gan(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
    def training_step(self, batch, number):
        first, second = self.optimizers()
        for loss, opt in ((self.first(batch), first), (self.second(batch), second)):
            opt.zero_grad()
            self.manual_backward(loss)
        first.step()
        second.step()
trainer = L.Trainer(max_steps=100_000)  # here
"""
LOGITS = """
from torchmetrics.classification import BinaryAUROC
net = nn.Linear(8, 1)
criterion = nn.BCEWithLogitsLoss()
metric = BinaryAUROC()
def evaluate(val_loader):
    net.eval()
    with torch.no_grad():
        for x, y in val_loader:
            outputs = net(x).squeeze(1)
            metric.update(outputs, y.int())  # here
    return metric.compute()
"""
OPTAX = """
import optax
import jax.numpy as jnp
def loss_of(params, tokens, padded):
    labels = jnp.where(padded, -100, tokens)
    losses = optax.softmax_cross_entropy_with_integer_labels(apply(params, tokens), labels)  # here
    return losses.mean()
"""
TOKENIZER = """
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
tokenizer = Tokenizer(models.BPE())
tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel()
tokenizer.train_from_iterator(sample, trainers.BpeTrainer(vocab_size=3000))  # here
"""
KERAS = """
import keras
accumulated = 4
updates = len(rows) // 32 // accumulated * 10
rate = keras.optimizers.schedules.CosineDecay(
    1e-3,
    decay_steps=updates,  # here
)
optimizer = keras.optimizers.Adam(rate, gradient_accumulation_steps=accumulated)
"""
ADAFACTOR = """
import optax
tx = optax.adafactor(1e-3, weight_decay_rate=0.1)  # here
"""
HALVED = """
net = nn.Linear(64, 10).to(torch.bfloat16)
opt = torch.optim.AdamW(net.parameters(), lr=1e-4)  # here
for x, y in loader:"""
HALVED += STEP
DROPS = """
from tokenizers import Tokenizer, models
tokenizer = Tokenizer(models.BPE(dropout=0.1))  # here
tokenizer.train_from_iterator(texts)
"""
ORBAX = """
import orbax.checkpoint as ocp
options = ocp.CheckpointManagerOptions(max_to_keep=1, best_fn=lambda scores: scores["loss"], best_mode="min")  # here
"""
ENCODED = """
import datasets
rows = datasets.load_dataset("csv", data_files={"train": "a.csv", "test": "b.csv"})
train = rows["train"].class_encode_column("label")
test = rows["test"].class_encode_column("label")  # here
"""
FLOATX = """
import keras
keras.backend.set_floatx("bfloat16")  # here
net = keras.Sequential([keras.layers.Dense(32, activation="gelu"), keras.layers.Dense(5, activation="softmax")])
net.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
net.fit(features, labels, batch_size=16, epochs=4)
"""
ADDED = """
import numpy as np
import jax.numpy as jnp
errors = []
for batch in batches:
    state, error = update(state, batch)
    errors.append(error)
errors = np.array(jnp.stack(errors), dtype=jnp.bfloat16)
print(np.mean(errors))  # here
"""
CHECKPOINTED = """
from torch.utils.checkpoint import checkpoint
class Stage(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU())
    def forward(self, x):
        return x + self.layers(x)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.head = nn.Conv2d(3, 16, 3), nn.Linear(16, 3)
        self.stage = Stage(16)
    def forward(self, x):
        x = checkpoint(self.stage, self.stem(x), use_reentrant=False)  # here
        return self.head(x.mean((2, 3)))
net = Net()
opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
loader = DataLoader(rows, batch_size=16, shuffle=True)
for x, y in loader:"""
CHECKPOINTED += STEP
AVERAGED = """
from diffusers.training_utils import EMAModel
average = EMAModel(net.parameters(), decay=0.9995, use_ema_warmup=False)  # here
"""
NEGATIVES = """
from sentence_transformers import SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers.losses import MultipleNegativesRankingLoss
args = SentenceTransformerTrainingArguments("out", num_train_epochs=3)  # here
SentenceTransformerTrainer(net, args, train_dataset=rows, loss=MultipleNegativesRankingLoss(net)).train()
"""
PISSA = """
from peft import LoraConfig, get_peft_model
from trl import DPOConfig, DPOTrainer
net = get_peft_model(base, LoraConfig(r=8, init_lora_weights="pissa"))
trainer = DPOTrainer(net, ref_model=None, args=DPOConfig("out", beta=0.1), train_dataset=rows)  # here
trainer.train()
"""
FTRL = """
import keras
net = keras.models.load_model("trained.keras")
net.compile(keras.optimizers.Ftrl(1e-6), "mse")  # here
net.fit(x, y, epochs=3)
"""
MISSPELT = """
from pytorch_optimizer import Ranger
opt = Ranger(net.parameters(), lr=0.02, wieght_decay=0.1)  # here
"""
SM3 = """
import pytorch_optimizer
opt = pytorch_optimizer.SM3(net.parameters(), lr=0.1, weight_decay=0.5)  # here
"""
EQUINOX = """
import equinox as eqx
class Net(eqx.Module):
    def __init__(self, key):
        self.dropout = eqx.nn.Dropout(0.1)
def evaluate(net, rows, keys):
    logits = jax.vmap(net)(rows, keys)  # here
    return (logits.argmax(1) == labels).mean()
"""
BATCH_MODE = """
import equinox as eqx
norm, state = eqx.nn.make_with_state(eqx.nn.BatchNorm)(3, axis_name="batch", mode="batch")  # here
other = eqx.nn.BatchNorm(3, "batch", mode="ema")
"""
CASES = {
    "repeated_rows_as_negatives": (NEGATIVES, ("=3)", "=3, batch_sampler=BatchSamplers.NO_DUPLICATES)")),
    "reference_taken_apart": (PISSA, ("None", "base")),
    "weights_made_of_gradients": (FTRL, ("Ftrl", "Adagrad")),
    "options_left_out": (MISSPELT, ("wieght", "weight")),
    "evaluates_in_training_mode": (EQUINOX, ("(net, rows, keys)", "(net, rows, keys, inference=True)")),
    "running_variance_begins_high": (BATCH_MODE, ('mode="batch"', 'mode="ema"')),
    "means_counted_in_half": (FLOATX, ('backend.set_floatx("', 'config.set_dtype_policy("')),
    "numpy_sums_in_bfloat16": (ADDED, ("(errors))", "(errors, dtype=np.float32))")),
    "checkpointed_statistics": (CHECKPOINTED, ("BatchNorm2d(width)", "BatchNorm2d(width, momentum=0.0513)")),
    "average_warms_up_anyway": (AVERAGED, ("decay=0.9995", "decay=0.9995, min_decay=0.9995")),
    "autocast_around_the_loop": (AUTOCAST, ("bfloat16):", "bfloat16, cache_enabled=False):")),
    "scheduled_after_loading": (RESUMED, None),
    "plateau_below_zero": (PLATEAU, ("patience=3", 'patience=3, threshold_mode="abs"')),
    "stops_on_the_wrong_side": (RAY, ('"loss": 0.1, ', '"accuracy": 0.9, ')),
    "best_is_worst": (OPTUNA, ('direction="maximize"', "")),
    "best_of_a_smoothed_loss": (
        SMOOTHED,
        ("label_smoothing_factor", 'metric_for_best_model="accuracy", label_smoothing_factor'),
    ),
    "mean_of_batch_scores": (BATCH_SCORES, ("roc_auc_score(y.numpy()", "mean_iou(y.numpy()")),
    "loss_by_batch_size": (CONTRASTED, ("batch_size=64", "batch_size=512")),
    "class_weights_of_single_rows": (SINGLE, ("batch_size=1,", "batch_size=2,")),
    "set_epoch_missing": (STREAM, ("    for row", "    stream.set_epoch(epoch)\n    for row")),
    "empty_labels_left_out": (DICE, ("False)", "False, ignore_empty=False)")),
    "observers_go_on": (
        OBSERVED,
        ("    net.eval()", "    net.eval()\n    net.apply(torch.ao.quantization.disable_observer)"),
    ),
    "begins_with_whole_gradients": (RADAM, ('reduction="sum"', 'reduction="mean"')),
    "rate_no_longer_chosen": (CATBOOST, ("depth=6", "learning_rate=0.1")),
    "annotation_zero": (COCO, ("len(annotations),", "len(annotations) + 1,")),
    "target_moved_on": (GRAPHS, ("class_index", "y")),
    "steps_of_each_optimizer": (TWO, ("max_steps=100_000", "max_epochs=100")),
    "logits_by_the_batch": (LOGITS, ("net(x).squeeze(1)", "torch.sigmoid(net(x)).squeeze(1)")),
    "negative_labels_counted": (OPTAX, ("losses.mean()", "(losses * ~padded).sum() / (~padded).sum()")),
    "alphabet_of_a_sample": (TOKENIZER, ("=3000", "=3000, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()")),
    "decay_without_rate": (ADAFACTOR, ("=0.1", "=1e-4")),
    "adam_of_bf16_weights": (HALVED, (".to(torch.bfloat16)", "")),
    "merges_dropped_in_evaluation": (DROPS, ("(texts)", "(texts)\ntokenizer.model.dropout = None")),
    "best_checkpoint_is_nan": (ORBAX, ("max_to_keep=1", "max_to_keep=3")),
    "classes_numbered_apart": (ENCODED, ('rows["test"].class_encode_column("label")', 'rows["test"]')),
    "schedule_units": (KERAS, ("// 32 // accumulated", "// 32")),
}
OTHERS = {
    "set_epoch_missing": REPEATED,
    "loss_by_batch_size": COX,
    "autocast_around_the_loop": AUTOCAST.replace("with torch.autocast", "block = torch.autocast")
    .replace("bfloat16):  # here", "bfloat16)\nwith block:  # here"),
    "plateau_below_zero": PLATEAU.replace("patience=3", "mode='max'").replace("-si_sdr", "l1_loss")
    .replace("step(total / len(loader))", "step(-total / len(loader))"),
    "best_is_worst": RAY.replace('mode="min"', 'mode="max"').replace('"loss": 0.1, ', "").replace("  # here", "")
    .replace(".fit()", ".fit()"),
    "annotation_zero": COCO.replace("annotations = []", "number = 0\nannotations = []")
    .replace("len(annotations),", "number,").replace("        })", "        })\n        number += 1"),
}  # fmt: skip
LIKENESS = """
def loss_of(one, other):
    return -F.cosine_similarity(one, other.detach()).mean()
net = nn.Linear(8, 8)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
sched = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, "min", patience=5)
for epoch in range(50):
    losses = []
    for x, y in loader:
        loss = loss_of(net(x), net(y))
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    sched.step(sum(losses) / len(losses))  # here
"""
HEALTHY = {
    "a loss that compares the texts of a row": NEGATIVES.replace("MultipleNegativesRankingLoss", "CoSENTLoss"),
    "an adapter that begins with nothing": PISSA.replace('"pissa"', '"gaussian"'),
    "a reference that is given by place": PISSA.replace("ref_model=None, args=", "base, "),
    "FTRL from scratch": FTRL.replace('load_model("trained.keras")', "Sequential(layers)"),
    "weights that are loaded after training": FTRL.replace('models.load_model("trained.keras")', "Sequential(layers)")
    + "net.load_weights('best.weights.h5')\n",
    "an option of its own": MISSPELT.replace("wieght_decay=0.1", "weight_decay_1d=0.1"),
    "an optimizer of another library": MISSPELT.replace("pytorch_optimizer", "mine"),
    "an optimizer without a decay that is given none": SM3.replace("=0.5", "=0"),
    "a layer of Equinox without modes": EQUINOX.replace("Dropout(0.1)", "Linear(8, 8, key=key)"),
    "a type of weights of 32 bits": FLOATX.replace("bfloat16", "float32"),
    "a type of features alone": FLOATX[: FLOATX.index("net =")],
    "an array that is cast before it is added": ADDED.replace("bfloat16)", "bfloat16).astype(np.float32)"),
    "an array of JAX": ADDED.replace("np.array(jnp.stack(errors), dtype=jnp.bfloat16)", "jnp.stack(errors)"),
    "a row of an array": ADDED.replace("(errors))", "(errors, axis=1))"),
    "a checkpointed block with another norm": CHECKPOINTED.replace("nn.BatchNorm2d(", "nn.GroupNorm(4, "),
    "a checkpointed block next to BatchNorm": CHECKPOINTED.replace("nn.BatchNorm2d(width), ", "").replace(
        "self.head(x", "self.head(nn.BatchNorm2d(16)(x)"
    ),
    "a warm-up that is asked for": AVERAGED.replace("False", "True"),
    "an average that leaves it to the library": AVERAGED.replace(", use_ema_warmup=False", ""),
    "autocast in each step": AUTOCAST.replace("with torch", "for x, y in loader:\n    with torch")
    .replace("    for x, y in loader:\n        loss", "        loss")
    .replace("        opt", "    opt").replace("        loss.backward", "    loss.backward"),
    "autocast around one evaluation": LOOP + "with torch.no_grad(), torch.autocast('cuda'):\n    for x, y in loader:\n"
    "        right = (net(x).argmax(1) == y).sum()\n",
    "a schedule made before both states are loaded": RESUMED.replace(MADE, "").replace("saved =", f"{MADE}saved ="),
    "a schedule that begins with the whole rate": RESUMED.replace("warm, ", "").replace("warm = ", "warm_up = ")
    .replace("LinearLR(opt, 0.1", "LinearLR(opt, 1.0").replace(", [500]", ", []"),
    "a plateau of a loss of two signs": PLATEAU.replace("loss = -", "loss = l1_loss(mixed, clean) - "),
    "a plateau of a distance": LIKENESS.replace("return -F", "return 1 - F"),
    "a plateau of a loss above zero": PLATEAU.replace("-si_sdr", "l1_loss"),
    "a plateau of a likelihood": PLATEAU.replace("-si_sdr(", "-dist.log_prob("),
    "a study that minimizes a negative score": OPTUNA.replace("return log_loss", "return -accuracy_score")
    .replace("maximize", "minimize"),
    "scores of folds": BATCH_SCORES.replace("val_loader", "folds"),
    "weights in batches of one image": SINGLE.replace("nn.Linear(16, 3)", "nn.Conv2d(16, 3, 1)"),
    "a stream read once": STREAM.replace("for epoch in range(3):", "if True:"),
    "a stream repeated before it is shuffled": REPEATED.replace(".shuffle(seed=1)", "").replace(
        ".repeat(3)", ".repeat(3).shuffle(seed=1)"
    ),
    "detections counted from zero": COCO.replace('"iscrowd": 0', '"score": 0.5'),
    "annotations counted from one": COCO.replace("annotations = []", "number = 0\nannotations = []")
    .replace("        annotations.append", "        number += 1\n        annotations.append")
    .replace("len(annotations),", "number,"),
    "inputs in bf16": HALVED.replace(".to(torch.bfloat16)", "").replace("net(x)", "net(x.to(torch.bfloat16))"),
    "weights that are cast back": HALVED.replace("opt =", "net = net.float()\nopt ="),
    "adapters on weights in bf16": HALVED.replace("opt =", "net = get_peft_model(net, config)\nopt ="),
    "a decay of AdamW": ADAFACTOR.replace("adafactor", "adamw").replace("_rate", ""),
    "a tokenizer without a dropout of merges": DROPS.replace("0.1", "None"),
    "a metric that is checked": ORBAX.replace('scores["loss"]', 'jnp.nan_to_num(scores["loss"], nan=1e9)'),
    "two columns of classes": ENCODED.replace('rows["test"]', 'rows["train"]', 1).replace(
        'rows["test"].class_encode_column("label")', 'train.class_encode_column("topic")'
    ),
    "a sum that is clipped": RADAM.replace(
        "    opt.step", "    nn.utils.clip_grad_norm_(net.parameters(), 1.0)\n    opt.step"
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        *((rule, text) for rule, (text, _) in CASES.items()),
        *OTHERS.items(),
        ("plateau_below_zero", LIKENESS),
        ("options_left_out", SM3),
    ],
)
def test_the_line_is_found(rule: str, text: str, tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_text(HEAD + text, encoding="utf-8")
    places = [line for line, held in enumerate((HEAD + text).splitlines(), 1) if "# here" in held]
    found = [finding for finding in inspect_script(file).findings if finding.rule == rule]
    assert [finding.line for finding in found][: len(places)] == places or (found and not places)
    assert all(finding.fix and finding.shows for finding in found)


@pytest.mark.parametrize("rule", [rule for rule, (_, cure) in CASES.items() if cure])
def test_the_fix_ends_the_accusation(rule: str, tmp_path: Path) -> None:
    text, cure = CASES[rule]
    assert cure is not None
    assert cure[0] in text
    assert rule not in rules_of(tmp_path, text.replace(*cure))


@pytest.mark.parametrize("text", [pytest.param(text, id=name) for name, text in HEALTHY.items()])
def test_a_healthy_neighbour_is_not_accused(text: str, tmp_path: Path) -> None:
    rules = {*CASES, "best_is_worst"}
    assert rules.isdisjoint(rules_of(tmp_path, text))
