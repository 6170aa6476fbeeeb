"""Train with a framework once as it should be and once with a far too high learning rate, and keep what it prints.

Run with the package installed: `python benchmarks/samples/frameworks.py FRAMEWORK FOLDER`. It writes
`FOLDER/FRAMEWORK/healthy.log` and `diverged.log`, or folders of these names. The packages and their versions stand in
`docs/reading.md`. Lines that describe the machine are left out of the samples; all else is as it was written.
"""

# ruff: noqa: ANN401, ARG002, D403 - the classes of frameworks have no types, and their names are written small
from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

HEALTHY_AND_TOO_HIGH = {"healthy": 1.0, "diverged": 1000.0}
"""What the usual learning rate is multiplied by in each run."""


@contextlib.contextmanager
def printed_to(path: Path) -> Iterator[None]:
    """Write what this process and its libraries print, to both streams, to a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    sys.stdout.flush()
    sys.stderr.flush()
    kept = os.dup(1), os.dup(2)
    with path.open("wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
        try:
            yield
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            for number, descriptor in zip((1, 2), kept, strict=True):
                os.dup2(descriptor, number)
                os.close(descriptor)


def classes(rows: int = 300, features: int = 8) -> tuple[Any, Any]:
    """Return rows of two classes that a linear model tells apart for the most part."""
    import numpy as np

    random = np.random.default_rng(0)
    x = random.normal(size=(rows, features)).astype("float32")
    y = (x[:, 0] + 0.5 * x[:, 1] + 0.4 * random.normal(size=rows) > 0).astype("int64")
    return x, y


def sgd_classifier(factor: float, path: Path) -> None:
    """scikit-learn's SGDClassifier."""
    from sklearn.linear_model import SGDClassifier

    x, y = classes()
    with printed_to(path):
        SGDClassifier(
            loss="log_loss", learning_rate="constant", eta0=0.01 * factor, max_iter=12, tol=None, verbose=1,
            random_state=0,
        ).fit(x, y)  # fmt: skip


def mlp_classifier(factor: float, path: Path) -> None:
    """scikit-learn's MLPClassifier."""
    from sklearn.neural_network import MLPClassifier

    x, y = classes()
    with printed_to(path):
        MLPClassifier(
            (16,), solver="sgd", learning_rate_init=0.05 * factor, max_iter=15, verbose=True, random_state=0
        ).fit(x, y)


def hist_gradient_boosting(factor: float, path: Path) -> None:
    """scikit-learn's HistGradientBoostingClassifier with early stopping watched."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    x, y = classes()
    with printed_to(path):
        HistGradientBoostingClassifier(
            learning_rate=0.1 * factor, max_iter=15, verbose=2, early_stopping=True, n_iter_no_change=20, random_state=0
        ).fit(x, y)


def gradient_boosting(factor: float, path: Path) -> None:
    """scikit-learn's GradientBoostingClassifier."""
    from sklearn.ensemble import GradientBoostingClassifier

    x, y = classes()
    with printed_to(path):
        GradientBoostingClassifier(learning_rate=0.1 * factor, n_estimators=15, verbose=2, random_state=0).fit(x, y)


def ignite(factor: float, path: Path) -> None:
    """Ignite's bar, drawn into a pipe, with a validation after each epoch."""
    import torch
    from ignite.contrib.handlers import ProgressBar
    from ignite.engine import Events, create_supervised_evaluator, create_supervised_trainer
    from ignite.metrics import Accuracy, Loss, RunningAverage

    torch.manual_seed(0)
    x, y = (torch.tensor(one) for one in classes())
    data = list(zip(x[:256].split(16), y[:256].split(16), strict=True))
    held_out = list(zip(x[256:].split(16), y[256:].split(16), strict=True))
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
    loss = torch.nn.CrossEntropyLoss()
    trainer = create_supervised_trainer(model, torch.optim.SGD(model.parameters(), 0.1 * factor), loss)
    RunningAverage(output_transform=lambda one: one).attach(trainer, "loss")
    evaluator = create_supervised_evaluator(model, {"acc": Accuracy(), "nll": Loss(loss)})
    bar = ProgressBar(persist=True)
    bar.attach(trainer, ["loss"])

    @trainer.on(Events.EPOCH_COMPLETED)
    def _evaluate(engine: Any) -> None:
        evaluator.run(held_out)
        found = evaluator.state.metrics
        bar.log_message(
            f"Validation Results - Epoch: {engine.state.epoch}  Avg accuracy: {found['acc']:.2f} "
            f"Avg loss: {found['nll']:.2f}"
        )  # fmt: skip

    with printed_to(path):
        trainer.run(data, max_epochs=3)


def tabnet(factor: float, path: Path) -> None:
    """TabNet's lines of each epoch."""
    from pytorch_tabnet.tab_model import TabNetClassifier

    x, y = classes()
    with printed_to(path):
        model = TabNetClassifier(optimizer_params={"lr": 0.02 * factor}, seed=0, verbose=1, device_name="cpu")
        model.fit(
            x[:240], y[:240], eval_set=[(x[240:], y[240:])], eval_metric=["logloss", "auc"], max_epochs=12, patience=0,
            batch_size=64, virtual_batch_size=32,
        )  # fmt: skip


def gensim(factor: float, path: Path) -> None:
    """gensim's Word2Vec, whose log names no loss; a callback of one's own prints it."""
    import logging

    from gensim.models import Word2Vec

    texts = [[f"w{(i * k) % 50}" for k in range(1, 12)] for i in range(400)]
    with printed_to(path):
        logging.basicConfig(format="%(asctime)s : %(levelname)s : %(message)s", level=logging.INFO, force=True)
        Word2Vec(
            texts, vector_size=16, min_count=1, epochs=5, alpha=0.025 * factor, workers=1, seed=0, compute_loss=True
        )


def optuna(factor: float, path: Path) -> None:
    """Optuna's trials: the value of each, and its parameters."""
    import optuna as package

    study = package.create_study(sampler=package.samplers.RandomSampler(seed=0))
    with printed_to(path):
        package.logging.enable_default_handler()
        study.optimize(lambda trial: (trial.suggest_float("x", -5, 5) - 2) ** 2 * factor, n_trials=12)


def fasttext(factor: float, path: Path) -> None:
    """fastText's progress, drawn over itself."""
    import fasttext as package

    with tempfile.TemporaryDirectory() as place:
        data = Path(place) / "data.txt"
        data.write_text(
            "".join(f"__label__{i % 2} {'good' if i % 2 else 'bad'} w{i % 30} w{i % 7}\n" for i in range(4000))
        )
        with printed_to(path), contextlib.suppress(RuntimeError):
            try:
                package.train_supervised(str(data), lr=0.1 * factor, epoch=5, thread=1, verbose=2)
            except RuntimeError as error:
                print(error)
                raise


def liblinear(factor: float, path: Path) -> None:
    """LIBLINEAR's trust-region lines."""
    from liblinear.liblinearutil import train

    x, y = classes()
    with printed_to(path):
        train(y.tolist(), x.tolist(), f"-s 0 -c {factor}")


def vowpal_wabbit(factor: float, path: Path) -> None:
    """Vowpal Wabbit's progress table."""
    from vowpalwabbit import Workspace

    x, y = classes(2000)
    with printed_to(path):
        model = Workspace(f"-l {0.5 * factor} --sgd --power_t 0 --loss_function squared -P 100", quiet=False)
        for row, label in zip(x, y, strict=True):
            model.learn(f"{2 * label - 1} | " + " ".join(f"f{i}:{value:.4f}" for i, value in enumerate(row)))
        model.finish()


def lightgbm(factor: float, path: Path) -> None:
    """LightGBM, stopped early."""
    import lightgbm as package

    x, y = classes()
    train = package.Dataset(x[:240], y[:240])
    with printed_to(path):
        package.train(
            {"objective": "binary", "learning_rate": 0.1 * factor, "num_threads": 1, "min_data_in_leaf": 5}, train, 20,
            valid_sets=[train, package.Dataset(x[240:], y[240:], reference=train)], valid_names=["train", "valid"],
            callbacks=[package.log_evaluation(1), package.early_stopping(10)],
        )  # fmt: skip


def labml(factor: float, path: Path) -> None:
    """labml's tracked lines."""
    os.environ["LABML_APP_URL"] = ""
    from labml import experiment, monit, tracker

    with tempfile.TemporaryDirectory() as place, contextlib.chdir(place), printed_to(path):
        Path(".labml.yaml").write_text("check_repo_dirty: false\n")
        experiment.create(name="sample", writers={"screen"})
        loss = 2.3
        with experiment.start():
            for step in monit.loop(20):
                loss = loss * (0.9 if factor == 1 else 9.0)
                tracker.save(step, {"loss.train": loss, "accuracy.valid": 1 / (1 + loss)})
    shutil.rmtree(Path(__file__).with_name("logs"), ignore_errors=True)  # it writes beside the script that starts it


def stable_baselines3(factor: float, path: Path) -> None:
    """PPO of Stable-Baselines3 on CartPole."""
    import torch
    from stable_baselines3 import PPO

    torch.set_num_threads(1)
    with printed_to(path):
        PPO(
            "MlpPolicy", "CartPole-v1", n_steps=128, learning_rate=3e-4 * factor, verbose=1, seed=0, device="cpu"
        ).learn(1000)


def spacy(factor: float, path: Path) -> None:
    """spaCy's table of `spacy train`, of a text classifier."""
    import spacy as package
    from spacy.tokens import DocBin

    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        blank = package.blank("en")
        for name, count in (("train", 80), ("dev", 20)):
            docs = DocBin()
            for i in range(count):
                doc = blank.make_doc(f"this is {'good' if i % 2 else 'bad'} number {i % 13}")
                doc.cats = {"POS": float(i % 2), "NEG": float(1 - i % 2)}
                docs.add(doc)
            docs.to_disk(folder / f"{name}.spacy")
        run = [sys.executable, "-m", "spacy"]
        subprocess.run([*run, "init", "config", "c.cfg", "-p", "textcat"], cwd=folder, check=True, capture_output=True)
        with printed_to(path):
            subprocess.run(
                [*run, "train", "c.cfg", "--paths.train", "train.spacy", "--paths.dev", "dev.spacy",
                 "--training.max_steps", "200", "--training.eval_frequency", "20",
                 "--training.optimizer.learn_rate", str(0.001 * factor)],
                cwd=folder, check=False, env={**os.environ, "FORCE_COLOR": "1"},
            )  # fmt: skip


def visualdl(factor: float, path: Path) -> None:
    """VisualDL's binary log."""
    from visualdl import LogWriter

    folder = path.with_suffix("")
    shutil.rmtree(folder, ignore_errors=True)
    with LogWriter(logdir=str(folder)) as writer:
        for step, loss in enumerate(logged_losses(factor)):
            writer.add_scalar(tag="train/loss", step=step, value=loss)
            writer.add_scalar(tag="train/lr", step=step, value=0.001 * factor)


def paddle(factor: float, path: Path) -> None:
    """PaddlePaddle's high-level API, `Model.fit`."""
    import paddle as package

    package.seed(0)
    x, y = classes()
    rows = package.io.TensorDataset([package.to_tensor(x), package.to_tensor(y[:, None])])
    trained, held_out = package.io.random_split(rows, [240, 60])
    model = package.Model(package.nn.Sequential(package.nn.Linear(8, 16), package.nn.ReLU(), package.nn.Linear(16, 2)))
    model.prepare(
        package.optimizer.SGD(0.1 * factor, parameters=model.parameters()),
        package.nn.CrossEntropyLoss(),
        package.metric.Accuracy(),
    )
    with printed_to(path):
        model.fit(trained, held_out, epochs=6, batch_size=24, log_freq=2, verbose=2)


def rsl_rl(factor: float, path: Path) -> None:
    """rsl_rl's blocks, of PPO on a point that is to go to the middle; only the console is kept."""
    import torch
    from rsl_rl.env import VecEnv
    from rsl_rl.runners import OnPolicyRunner
    from tensordict import TensorDict

    class Point(VecEnv):
        num_envs, num_actions, max_episode_length, device = 16, 1, 20, "cpu"
        cfg: ClassVar[dict[str, object]] = {}

        def __init__(self) -> None:
            self.episode_length_buf = torch.zeros(16, dtype=torch.long)
            self.at = torch.randn(16, 1)

        def get_observations(self) -> Any:
            return TensorDict({"policy": self.at.clone()}, batch_size=[16])

        def step(self, actions: Any) -> Any:
            self.at = self.at + 0.1 * actions.clamp(-1, 1)
            self.episode_length_buf += 1
            done = self.episode_length_buf >= 20
            self.at = torch.where(done[:, None], torch.randn(16, 1), self.at)
            self.episode_length_buf[done] = 0
            return self.get_observations(), -self.at.abs()[:, 0], done.long(), {"time_outs": done}

    torch.manual_seed(0)
    model = {"class_name": "MLPModel", "hidden_dims": [16], "activation": "elu"}
    gaussian = {"class_name": "GaussianDistribution", "init_std": 1.0}
    config = {
        "num_steps_per_env": 24, "save_interval": 1000, "obs_groups": {"actor": ["policy"], "critic": ["policy"]},
        "actor": {**model, "distribution_cfg": gaussian}, "critic": dict(model),
        "algorithm": {"class_name": "PPO", "learning_rate": 0.001 * factor, "schedule": "fixed"},
        "check_for_nan": False,
    }  # fmt: skip
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place, printed_to(path):
        OnPolicyRunner(Point(), config, log_dir=place).learn(25)


def skrl(factor: float, path: Path) -> None:
    """skrl's event file, of PPO on CartPole."""
    import gymnasium
    import torch
    from skrl.agents.torch.ppo import PPO, PPO_CFG
    from skrl.envs.wrappers.torch import wrap_env
    from skrl.memories.torch import RandomMemory
    from skrl.models.torch import CategoricalMixin, DeterministicMixin, Model
    from skrl.trainers.torch import SequentialTrainer
    from skrl.utils import set_seed

    set_seed(0)
    env = wrap_env(gymnasium.make_vec("CartPole-v1", num_envs=2, vectorization_mode="sync"), wrapper="gymnasium")

    class Policy(CategoricalMixin, Model):
        def __init__(self) -> None:
            Model.__init__(self, observation_space=env.observation_space, action_space=env.action_space, device="cpu")
            CategoricalMixin.__init__(self)
            self.net = torch.nn.Sequential(torch.nn.Linear(4, 32), torch.nn.Tanh(), torch.nn.Linear(32, 2))

        def compute(self, inputs: Any, role: str = "") -> Any:
            return self.net(inputs["observations"]), {}

    class Value(DeterministicMixin, Model):
        def __init__(self) -> None:
            Model.__init__(self, observation_space=env.observation_space, action_space=env.action_space, device="cpu")
            DeterministicMixin.__init__(self)
            self.net = torch.nn.Sequential(torch.nn.Linear(4, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1))

        def compute(self, inputs: Any, role: str = "") -> Any:
            return self.net(inputs["observations"]), {}

    folder = path.with_suffix("")
    shutil.rmtree(folder, ignore_errors=True)
    config = PPO_CFG(rollouts=64, learning_epochs=2, mini_batches=2, learning_rate=3e-4 * factor)
    config.experiment.directory, config.experiment.experiment_name = str(folder.parent), folder.name
    config.experiment.write_interval, config.experiment.checkpoint_interval = 64, 0
    agent = PPO(
        models={"policy": Policy(), "value": Value()}, memory=RandomMemory(memory_size=64, num_envs=2), cfg=config,
        observation_space=env.observation_space, action_space=env.action_space, device="cpu",
    )  # fmt: skip
    SequentialTrainer(
        cfg={"timesteps": 1280, "headless": True, "disable_progressbar": True}, env=env, agents=agent
    ).train()


TFJS = """
const tf = require('@tensorflow/tfjs');
const rate = parseFloat(process.argv[2]);
(async () => {
  const x = tf.tensor2d([...Array(64).keys()].map(i => [(i * 29 % 64) / 64, (i * 43 % 64) / 64]));
  const y = x.sum(1, true).mul(2);
  const model = tf.sequential({layers: [tf.layers.dense({units: 8, activation: 'relu', inputShape: [2],
    kernelInitializer: tf.initializers.glorotNormal({seed: 1})}), tf.layers.dense({units: 1,
    kernelInitializer: tf.initializers.glorotNormal({seed: 2})})]});
  model.compile({optimizer: tf.train.sgd(rate), loss: 'meanSquaredError', metrics: ['mae']});
  await model.fit(x, y, {epochs: 8, validationSplit: 0.25, verbose: 0, shuffle: false,
    callbacks: {onEpochEnd: (epoch, logs) => console.log(epoch, logs)}});
})();
"""
BRAIN = """
const brain = require('brain.js');
const net = new brain.NeuralNetwork({hiddenLayers: [4], learningRate: parseFloat(process.argv[2])});
const data = [[0, 0, 0], [0, 1, 1], [1, 0, 1], [1, 1, 0]].map(([a, b, c]) => ({input: [a, b], output: [c]}));
net.train(data, {iterations: 3000, log: true, logPeriod: 300, errorThresh: 0.001});
"""


def node(script: str, rate: float, path: Path) -> None:
    """Run a script of Node, whose packages stand where NODE_PATH says, and keep what it prints."""
    with printed_to(path):
        subprocess.run(["node", "-e", script, "--", str(rate)], check=False)


def tensorflow_js(factor: float, path: Path) -> None:
    """TensorFlow.js in Node: the objects that a usual callback prints."""
    node(TFJS.replace("argv[2]", "argv[1]"), 0.05 * factor, path)


def brain_js(factor: float, path: Path) -> None:
    """brain.js."""
    node(BRAIN.replace("argv[2]", "argv[1]"), min(0.3 * factor, 0.99), path)  # it takes no rate of 1 or more


def ray_tune(factor: float, path: Path) -> None:
    """A trial's folder of Ray Tune: `result.json`, `progress.csv`, `params.json` and an event file."""
    import math

    import ray
    from ray import tune

    def train(config: dict[str, float]) -> None:
        weight = 3.0
        for step in range(20):
            with contextlib.suppress(OverflowError):
                weight -= config["lr"] * 2 * weight
            loss = weight * weight if abs(weight) < 1e20 else math.nan
            tune.report({"loss": loss, "mean_accuracy": 1 / (1 + loss), "step": step})

    folder = path.with_suffix("")
    with tempfile.TemporaryDirectory() as place:
        ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False, object_store_memory=100_000_000)
        tune.Tuner(
            train, param_space={"lr": 0.05 * factor, "batch_size": 32},
            run_config=tune.RunConfig(storage_path=place, name="experiment", verbose=0),
        ).fit()  # fmt: skip
        ray.shutdown()
        (trial,) = (one for one in (Path(place) / "experiment").iterdir() if one.is_dir())
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for name in ("result.json", "progress.csv", "params.json", "events.out.tfevents*"):
            for one in trial.glob(name):
                shutil.copy(one, folder)


def logged_losses(factor: float) -> list[float]:
    """Return the losses that are logged with a tracker: falling, or growing up to NaN."""
    if factor == 1:
        return [2.3 * 0.9**step + 0.1 for step in range(20)]
    return [2.3, 9.0, 480.0, 5e6, 3e19, float("inf"), float("inf")] + [float("nan")] * 13


def polyaxon(factor: float, path: Path) -> None:
    """Polyaxon's offline events: a file for each metric."""
    folder = path.with_suffix("")
    with tempfile.TemporaryDirectory() as place:
        os.environ |= {"POLYAXON_OFFLINE_ROOT": place, "POLYAXON_HOME": place}
        from polyaxon import tracking

        tracking.init(is_offline=True, artifacts_path=place, track_env=False, track_code=False, track_logs=False)
        tracking.log_inputs(lr=0.001 * factor, batch_size=32)
        for step, loss in enumerate(logged_losses(factor)):
            tracking.log_metrics(step=step, loss=loss, val_loss=loss + 0.1)
        tracking.end()
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(place, folder)


def pykeen(factor: float, path: Path) -> None:
    """PyKEEN's bar of its training loop."""
    from pykeen.pipeline import pipeline

    with printed_to(path):
        pipeline(
            dataset="Nations", model="TransE", optimizer="SGD", optimizer_kwargs={"lr": 0.1 * factor},
            training_kwargs={"num_epochs": 10, "use_tqdm_batch": False}, random_seed=0, device="cpu",
        )  # fmt: skip


def flair(factor: float, path: Path) -> None:
    """Flair's lines of a tagger with embeddings of its own."""
    from flair.data import Corpus, Sentence
    from flair.embeddings import OneHotEmbeddings
    from flair.models import SequenceTagger
    from flair.trainers import ModelTrainer

    def sentence(number: int) -> Any:
        one = Sentence(f"word{number % 7} good{number % 3} word{number % 5}")
        for token in one:
            token.add_label("pos", "ADJ" if token.text.startswith("good") else "NOUN")
        return one

    rows = [sentence(i) for i in range(120)]
    corpus = Corpus(rows[:80], rows[80:100], rows[100:])
    labels = corpus.make_label_dictionary("pos", add_unk=False)
    embeddings = OneHotEmbeddings.from_corpus(corpus, field="text", embedding_length=8)
    tagger = SequenceTagger(embeddings, tag_dictionary=labels, tag_type="pos", use_crf=False, hidden_size=16)
    with tempfile.TemporaryDirectory() as place:
        ModelTrainer(tagger, corpus).train(
            place, learning_rate=0.1 * factor, mini_batch_size=8, max_epochs=5, train_with_dev=False
        )
        folder = path.with_suffix("")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for name in ("loss.tsv", "training.log"):
            shutil.copy(Path(place) / name, folder)


def darknet(factor: float, path: Path) -> None:
    """darknet's classifier, a program of its own, on pictures of two brightnesses."""
    import numpy as np
    from PIL import Image

    random = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        names = []
        for number in range(40):
            name = folder / f"{number}_{'dark' if number % 2 else 'light'}.png"
            level = 60 if number % 2 else 190
            Image.fromarray(random.integers(level - 40, level + 40, (16, 16, 3), dtype="uint8")).save(name)
            names.append(str(name))
        (folder / "train.list").write_text("\n".join(names) + "\n")
        (folder / "labels.txt").write_text("dark\nlight\n")
        (folder / "x.data").write_text("classes=2\ntrain=train.list\nlabels=labels.txt\nbackup=.\ntop=1\n")
        (folder / "x.cfg").write_text(
            f"[net]\nbatch=8\nsubdivisions=1\nheight=16\nwidth=16\nchannels=3\nmin_crop=16\nmax_crop=16\n"
            f"learning_rate={0.001 * factor}\npolicy=constant\nmax_batches=40\nmomentum=0.9\ndecay=0.0005\n\n"
            "[connected]\noutput=2\nactivation=linear\n\n[softmax]\n\n[cost]\ntype=sse\n"
        )
        with printed_to(path):
            subprocess.run(["darknet", "classifier", "train", "x.data", "x.cfg"], cwd=folder, check=False)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(line for line in lines if not line.startswith(("Saving weights", "Loaded"))))


def mlx_lm(factor: float, path: Path) -> None:
    """mlx-lm's table of training, drawn by its own class: the losses are those of the trackers."""
    from mlx_lm.cli_ui import TrainUI

    with printed_to(path), TrainUI(20) as table:
        for step, loss in enumerate(logged_losses(factor), start=1):
            table.advance()
            if step % 10 == 0:
                table.report_val(step, loss + 0.1, 0.3)
            table.report_train(step, loss, 1200.0 + step, 100.0 * step)


FRAMEWORKS: dict[str, Callable[[float, Path], None]] = {
    one.__name__: one
    for one in (
        sgd_classifier, mlp_classifier, hist_gradient_boosting, gradient_boosting, ignite, tabnet, gensim,
        optuna, fasttext, liblinear, vowpal_wabbit, lightgbm, labml, stable_baselines3, rsl_rl, skrl, spacy,
        visualdl, paddle, tensorflow_js, brain_js, ray_tune, polyaxon, pykeen, flair, darknet, mlx_lm,
    )
}  # fmt: skip


OF_MACHINE = re.compile(
    rf"site-packages|{re.escape(tempfile.gettempdir())}/|{re.escape(str(Path.home()))}|{re.escape(str(Path(__file__).parents[2]))}"
)


def without_machine(folder: Path) -> None:
    """Leave out the lines that name folders of this machine, and its name, from what was kept."""
    for path in folder.rglob("*"):
        try:
            text = path.read_bytes().decode()
        except (UnicodeDecodeError, IsADirectoryError):
            continue
        kept = "".join(line for line in text.splitlines(keepends=True) if OF_MACHINE.search(line) is None)
        named = re.sub(r'"hostname": "[^"]*", "node_ip": "[^"]*"', '"hostname": "host", "node_ip": "127.0.0.1"', kept)
        path.write_bytes(named.encode())


def write_samples(makers: Mapping[str, Callable[[float, Path], None]]) -> None:
    """Write the samples of the framework that the command line names into the folder that it names."""
    framework, into = sys.argv[1], Path(sys.argv[2]).resolve()
    for name, times in HEALTHY_AND_TOO_HIGH.items():
        makers[framework](times, into / framework / f"{name}.log")
    without_machine(into / framework)


if __name__ == "__main__":
    write_samples(FRAMEWORKS)
