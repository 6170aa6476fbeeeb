"""Do arguments of optimizers, trainers and libraries fit together, and has what the script writes an effect?"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator
from difflib import get_close_matches
from typing import NamedTuple

from mldebug_mcp.models.script import Certainty
from mldebug_mcp.script.calls import (
    Call,
    called_name,
    constant_of,
    dotted,
    is_operation,
    last_name,
    last_part,
    method_of,
    names_in,
    only_value,
    parameters_of,
    walk,
)
from mldebug_mcp.script.faults import Fault, fault
from mldebug_mcp.script.library import CUT, EVALUATES, NO_GRADIENTS
from mldebug_mcp.script.metrics import better, better_of, is_below_zero
from mldebug_mcp.script.roles import Roles, entries_of
from mldebug_mcp.script.trace import Registered
from mldebug_mcp.script.values import Constant, facts_of

HIGHEST_ADAM = 0.05
"""Learning rate of a network with Adam above which it is likely wrong. Chosen: published recipes stay below 0.01."""
HIGHEST_SGD = 50.0
"""Learning rate with SGD above which it is likely wrong. Chosen: linear probes of MoCo use 30."""
OTHER_SCALE = re.compile(r"gpytorch|pyro|PromptTuning|PrefixTuning|LambdaLR")
"""What moves the usual range of learning rates: Gaussian processes, prompts, factors of a schedule."""
HIGHEST_DECAY = 1.0
"""Weight decay above which it is likely wrong. Chosen: experiments on grokking use 1.0."""
TIGHTEST_CLIP = 0.01
"""Limit of the gradient norm below which it is likely wrong. Chosen: recipes use 0.1 to 10."""
PLATEAU_BY_PLACE = 4
"""Arguments of a `ReduceLROnPlateau` up to its patience. Source: PyTorch; the threshold comes next."""
IMPORTS_RAY = re.compile(r"^\s{0,40}(?:import|from) ray\b", re.MULTILINE)
STEP = "training_step"
_OF_A_LOADER = re.compile(r"(?:_epoch|_step)?(?:/dataloader_idx_\d+)?$")
"""What Lightning adds to a name that was logged of steps and of passes, or of several loaders."""


def settings_contradict(roles: Roles) -> Iterator[Fault]:
    """Arguments of trainers and optimizers that contradict each other or lie far outside of what is used."""
    for call in roles.script.calls:
        given = _Given(roles, call)
        if re.search(r"(?:Arguments|Config)$", call.name):
            if given.value("fp16") is True and given.value("bf16") is True:
                says = "fp16 and bf16 are both on, and exclude each other"
                yield fault("two_precisions", given.line("bf16"), "certain", says)
            yield from _warmup(given)
            yield from _best_model(given)
            yield from _groups_and_pairs(given)
        yield from _far_outside(roles, given)
        yield from _direction(roles, given)
        yield from _ceilings(roles, given)
        yield from _searched(roles, given)
    yield from _manual_optimization(roles)
    yield from _masked_language_model(roles)
    yield from _plateau(roles)


class _Given:
    """The keyword arguments of a call: their values where these are constants, and their lines."""

    def __init__(self, roles: Roles, call: Call) -> None:
        self._roles = roles
        self.call = call
        self._keywords = roles.keywords(call)

    def __contains__(self, name: str) -> bool:
        return name in self._keywords or self._roles.setting_of(self.call, name) is not None

    def is_written_out(self, name: str) -> bool:
        """Say whether all arguments are written out, and nothing in the script sets another one later."""
        return not self.call.is_spread and name not in self._roles.source

    def value(self, name: str, place: int | None = None) -> object:
        """Return the value of an argument; None where it is not given or no constant."""
        node = self._keywords.get(name)
        if node is None and place is not None and place < len(self.call.node.args):
            node = self.call.node.args[place]
        value = self._roles.value_of(node)
        return self._roles.setting_of(self.call, name) if value is None else value

    def number(self, name: str, place: int | None = None) -> float | None:
        """Return the value of an argument that is a number."""
        value = self.value(name, place)
        return value if isinstance(value, int | float) and not isinstance(value, bool) else None

    def text(self, name: str, place: int | None = None) -> str:
        """Return the value of an argument that is a text; empty where it is none."""
        value = self.value(name, place)
        return value if isinstance(value, str) else ""

    def written_at(self, name: str) -> int:
        """Return the line where the value of an argument is written; 0 where that is not known."""
        values = self._roles.trace.settings.get(id(self.call.node), {}).get(name, [])
        return next((facts_of(value).line for value in values), 0)

    def line(self, name: str) -> int:
        """Return the line of an argument; of the call where it is given by place."""
        node = self._keywords.get(name)
        return node.lineno if node is not None else self.call.line


def _far_outside(roles: Roles, given: _Given) -> Iterator[Fault]:
    call = given.call
    of_trainer = re.search(r"(?:Arguments|Config)$", call.name)
    of_optimizer = call.method in ("Adam", "AdamW", "SGD", "NAdam", "RAdam", "Lion")
    rate = given.number("lr", 1) if of_optimizer else given.number("learning_rate") if of_trainer else None
    highest = HIGHEST_SGD if call.method == "SGD" else HIGHEST_ADAM
    if rate is not None and rate > highest and _is_of_network(roles, call):
        yield fault("rate_far_too_high", call.line, "likely", f"{call.name} has a learning rate of {rate}")
    decay = given.number("weight_decay")
    if decay is not None and decay > HIGHEST_DECAY:
        yield fault("decay_far_too_high", call.line, "likely", f"{call.name} has a weight decay of {decay}")
    limit = given.number("max_norm", 1) if call.method == "clip_grad_norm_" else given.number("max_grad_norm")
    if limit is not None and 0 < limit < TIGHTEST_CLIP:
        yield fault("clip_far_too_tight", call.line, "likely", f"gradients are clipped at {limit}")


def _is_of_network(roles: Roles, call: Call) -> bool:
    """Say whether a learning rate is for the layers of a network, and nothing moves its usual range."""
    of_trainer = bool(re.search(r"(?:Arguments|Config)$", call.name))
    given = roles.source_of(call.node.args[0], call) if call.node.args and not of_trainer else None
    text = "param" if given is None else ast.unparse(given)
    listed = isinstance(given, ast.List | ast.Tuple) and "parameters(" not in text
    points = listed or not re.search(r"param|group", text)
    clipped = call.method == "SGD" and bool(roles.script.named("clip_grad_norm_", "clip_grad_value_"))
    return not points and not clipped and not OTHER_SCALE.search(roles.source)


def _warmup(given: _Given) -> Iterator[Fault]:
    warmup, steps, share = given.number("warmup_steps"), given.number("max_steps"), given.number("warmup_ratio")
    if warmup is not None and steps is not None and 0 < steps <= warmup:
        says = f"warmup_steps={warmup} takes all of max_steps={steps}: the learning rate never reaches its peak"
        yield fault("warmup_beyond_plan", given.line("warmup_steps"), "certain", says)
    if given.value("lr_scheduler_type") == "constant" and ((warmup or 0) > 0 or (share or 0) > 0):
        says = "lr_scheduler_type='constant' has no warm-up, and so warmup_steps and warmup_ratio are not used"
        yield fault("warmup_not_used", given.line("lr_scheduler_type"), "certain", says)


def _best_model(given: _Given) -> Iterator[Fault]:
    if given.value("load_best_model_at_end") is not True:
        return
    saves = given.value("save_strategy") or "steps"
    given_judges = given.value("eval_strategy") or given.value("evaluation_strategy")
    judges = given_judges or (
        "no" if all(map(given.is_written_out, ("eval_strategy", "evaluation_strategy"))) else None
    )
    if judges is not None and (judges == "no" or (saves not in (judges, "best"))):
        says = f"load_best_model_at_end needs one strategy for both: eval {judges}, save {saves}"
        yield fault("best_model_unknown", given.call.line, "certain", says)
    smoothed = given.number("label_smoothing_factor")
    if smoothed and judges != "no" and (given.text("metric_for_best_model") or "loss") in ("loss", "eval_loss"):
        says = (
            f"the best checkpoint is the one of the lowest eval_loss, which has label_smoothing_factor={smoothed:g} in "
            "it: it rises as a model gets surer of right answers"
        )
        line = given.line("label_smoothing_factor")
        yield fault("best_of_a_smoothed_loss", line, "depends", says, lines=(given.line("load_best_model_at_end"),))
    every, save_every = given.number("eval_steps"), given.number("save_steps")
    if judges == saves == "steps" and every and save_every and every >= 1 and save_every % every:
        says = f"load_best_model_at_end needs save_steps={save_every} to be a multiple of eval_steps={every}"
        yield fault("best_model_unknown", given.line("save_steps"), "certain", says)


def _groups_and_pairs(given: _Given) -> Iterator[Fault]:
    """Yield what of groups of rollouts and pairs of preferences leaves nothing to learn from."""
    if given.number("num_generations") == 1:
        says = "num_generations=1: a group of one has no reward above or below its mean"
        yield fault("group_of_one", given.line("num_generations"), "certain", says)
    if re.search(r"GRPO|RLOO", given.call.name) and given.number("temperature") == 0:
        says = "temperature=0: all rollouts of a group are the same, and so are their rewards"
        yield fault("greedy_rollouts", given.line("temperature"), "certain", says)
    group, size = given.number("num_generations"), given.number("per_device_train_batch_size")
    windows = given.number("gradient_accumulation_steps") if "gradient_accumulation_steps" in given else 1
    planned = "generation_batch_size" in given or "steps_per_generation" in given
    if (
        group
        and size
        and windows
        and not planned
        and size * windows % group
        and re.search(r"GRPO|RLOO", given.call.name)
    ):
        says = f"num_generations={group} does not divide the {size * windows:g} rows of a step on one device"
        yield fault("groups_do_not_fit", given.line("num_generations"), "likely", says)
    longest, prompt = given.number("max_length"), given.number("max_prompt_length")
    if longest is not None and prompt is not None and 0 < longest <= prompt:
        says = f"max_prompt_length={prompt} leaves nothing of max_length={longest} to the answers"
        yield fault("prompt_takes_all", given.line("max_prompt_length"), "likely", says)
    if re.search(r"DPO", given.call.name) and given.number("beta") == 0:
        says = "beta=0: the preference loss is the same for all weights, and has no gradient"
        yield fault("beta_of_zero", given.line("beta"), "certain", says)


def _direction(roles: Roles, given: _Given) -> Iterator[Fault]:
    """Yield where the best model, or the time to stop, is looked for in the wrong direction of a metric.

    Transformers takes the highest for the best of each metric whose name does not end in "loss"
    (TrainingArguments, `greater_is_better`).
    """
    metric, of_transformers = given.text("metric_for_best_model"), True
    if not metric:
        metric, of_transformers = given.text("monitor"), False
    direction = {True: "max", False: "min"}.get(given.value("greater_is_better"), given.text("mode"))  # type: ignore[call-overload]
    asked = "greater_is_better" in given or "mode" in given
    if metric and of_transformers and not asked and given.is_written_out("greater_is_better"):
        direction = "min" if metric.endswith("loss") else "max"
    if not metric or direction not in ("max", "min"):
        return
    side = better(roles, metric)
    if (direction, side) in (("max", "lower"), ("min", "higher")):
        argument = "greater_is_better" if "greater_is_better" in given else "mode" if asked else "metric_for_best_model"
        unless = "" if asked else " unless greater_is_better says otherwise"
        says = f"{metric} is better when {side}, and its {direction} is kept as the best{unless}"
        lines = [given.written_at(name) for name in ("metric_for_best_model", "monitor", "greater_is_better", "mode")]
        yield fault("best_is_worst", given.line(argument), "certain", says, lines=lines)


def _ceilings(roles: Roles, given: _Given) -> Iterator[Fault]:
    """Yield goals of Ray Tune that a trial is to come down to: each number in `stop` is a ceiling.

    Source: `ray.tune` ends a trial where a value is at or above that in `stop`, whatever the mode
    (findings/ray_ends_a_trial_above_its_goal.sh).
    """
    of_ray = given.call.method in ("RunConfig", "run") and IMPORTS_RAY.search(roles.source)
    stop = given.call.keywords.get("stop") if of_ray else None
    for name, value in entries_of(roles.source_of(stop, given.call)).items() if stop is not None else ():
        goal = roles.number_of(value)
        if goal is not None and better(roles, name) == "lower":
            says = f"a trial ends where {name} is at or above {goal:g}, and {name} is better when lower"
            yield fault("stops_on_the_wrong_side", value.lineno, "certain", says)


def _searched(roles: Roles, given: _Given) -> Iterator[Fault]:
    """Yield searches that look for the worst of a metric: of Ray Tune, KerasTuner and Optuna."""
    call = given.call
    side: str = ""
    if call.method == "Objective":
        name, direction = given.text("name", 0), given.text("direction", 1)
    elif call.method == "optimize" and call.node.args:
        name, direction = _objective(roles, call)
        side = _side_returned(roles, name) if name else ""
    elif IMPORTS_RAY.search(roles.source):
        name, direction = given.text("metric"), given.text("mode")
    else:
        return
    direction = {"maximize": "max", "minimize": "min"}.get(direction, direction)
    side = side or (better(roles, name) if name and direction in ("max", "min") and call.method != "optimize" else "")
    if (direction, side) in (("max", "lower"), ("min", "higher")):
        says = f"{name} is better when {side}, and its {direction} is searched for"
        yield fault("best_is_worst", call.line, "certain", says)


def _objective(roles: Roles, call: Call) -> tuple[str, str]:
    """Return the function that a study of Optuna optimizes, and in which direction; empty where that is not known."""
    made = roles.script.assigned(call.owner, call.order)
    study = roles.call_of(made.value) if made is not None else None
    if study is None or study.method != "create_study" or study.is_spread:
        return "", ""
    given = _Given(roles, study)
    if "directions" in given or ("direction" in given and not given.text("direction")):
        return "", ""
    return dotted(call.node.args[0]), given.text("direction") or "minimize"


def _side_returned(roles: Roles, name: str) -> str:
    """Return on which side what a function gives is better, where it gives one thing alone."""
    value = only_value(roles.definitions.get(name))
    return better_of(roles, value, name) if value is not None else ""


def _manual_optimization(roles: Roles) -> Iterator[Fault]:
    """Yield what the trainer of Lightning is given that it cannot do for a module that steps its optimizers itself."""
    made = roles.script.made("self.automatic_optimization")
    off = [assignment for assignment in made if constant_of(assignment.value) is False]
    for call in roles.script.named("Trainer") if off else ():
        given = _Given(roles, call)
        for name in ("gradient_clip_val", "accumulate_grad_batches"):
            value = given.number(name)
            if value is not None and value != (1 if name == "accumulate_grad_batches" else 0):
                says = f"{name}={value} is for automatic optimization, which line {off[0].line} turns off"
                yield fault("manual_optimization", given.line(name), "certain", says)


def _masked_language_model(roles: Roles) -> Iterator[Fault]:
    """Yield collators of another kind of language model than the one that is trained."""
    causal = any(re.search(r"ForCausalLM|LMHeadModel", call.name) for call in roles.script.calls)
    masked = any(re.search(r"ForMaskedLM", call.name) for call in roles.script.calls)
    for call in roles.script.named("DataCollatorForLanguageModeling"):
        given = _Given(roles, call)
        of_transformers = not re.search(r"from trl[\w.]* import[^\n]*DataCollatorForLanguageModeling", roles.source)
        if not of_transformers or causal == masked:
            continue
        value = given.value("mlm") if "mlm" in given else True
        if causal and value is True:
            says = "the collator masks tokens (mlm is True unless it is given), and the model predicts the next token"
            yield fault("wrong_collator", call.line, "certain", says, fix="mlm=False")
        elif masked and value is False:
            says = "the collator masks no tokens (mlm=False), and the model learns to fill masked ones"
            yield fault("wrong_collator", call.line, "certain", says, fix="mlm=True")


def _plateau(roles: Roles) -> Iterator[Fault]:
    """Yield schedules that wait for a plateau of the wrong side of a metric."""
    for name, made in roles.schedules.items():
        call = roles.call_of(made.value)
        if call is None or not call.name.endswith("ReduceLROnPlateau"):
            continue
        given = _Given(roles, call)
        mode = given.text("mode", 1) or "min"
        is_relative = (
            "threshold" not in given and "threshold_mode" not in given and len(call.node.args) <= PLATEAU_BY_PLACE
        )
        for step in roles.schedule_steps:
            if last_part(step.owner) != last_part(name) or not step.node.args:
                continue
            if is_relative and is_below_zero(roles, step.node.args[0], step.function):
                says = (
                    f"{name} waits for a plateau of {ast.unparse(step.node.args[0])[:60]}, which is below zero: its "
                    "threshold is relative, so a value that stands still counts as better"
                )
                yield fault("plateau_below_zero", step.line, "likely", says, lines=(made.line,))
            metric = last_name(step.node.args[0])
            if isinstance(step.node.args[0], ast.Call):
                continue
            side = better(roles, metric)
            if (mode, side) in (("max", "lower"), ("min", "higher")):
                says = f"the schedule waits for the {mode} of {metric}, which is better when {side}"
                yield fault("plateau_of_the_wrong_side", made.line, "certain", says)


def step_gives_loss(roles: Roles) -> Iterator[Fault]:
    """A training step gives back no loss, one without its graph, or one that Lightning divides once more."""
    for module, step in _modules(roles):
        by_hand = "automatic_optimization" in ast.unparse(module) or "manual_backward" in ast.unparse(module)
        if not by_hand:
            returned = [node for node in walk(step, ast.Return) if node.value is not None]
            yields = any(isinstance(node, ast.Raise | ast.Yield) for node in ast.walk(step))
            if not returned and not yields and len(step.body) > 1:
                says = f"training_step of {module.name} returns no loss: Lightning makes no step"
                yield fault("no_backward", step.lineno, "certain", says, fix="return the loss")
            for node in returned:
                value = _of_key(node.value)
                source = _last_value(step, value) if isinstance(value, ast.Name) else value
                method = called_name(source)
                if isinstance(source, ast.Call) and isinstance(source.func, ast.Attribute) and method in CUT:
                    says = f"the loss that training_step returns is cut off from the model by {method}()"
                    yield fault("loss_cut_off", node.lineno, "certain", says)
                if is_operation(source, ast.Div):
                    yield from _divided(roles, source)


def _modules(roles: Roles) -> Iterator[tuple[ast.ClassDef, ast.FunctionDef]]:
    """Yield the modules of Lightning that stand in the file, each with its training step."""
    for module in walk(roles.script.tree, ast.ClassDef):
        step = method_of(module, STEP)
        if step is not None and "LightningModule" in map(last_name, module.bases):
            yield module, step


def _divided(roles: Roles, loss: ast.BinOp) -> Iterator[Fault]:
    for call in roles.script.named("Trainer"):
        given = call.keywords.get("accumulate_grad_batches")
        if given is None or constant_of(given) in (None, 1):
            same = given is not None and dotted(given) and dotted(given) == dotted(loss.right)
        else:
            same = constant_of(given) == constant_of(loss.right) or "accum" in ast.unparse(loss.right)
        if same:
            says = f"the loss is divided by {ast.unparse(loss.right)}, and the Trainer divides it once more"
            yield fault("divided_twice", loss.lineno, "certain", says)


def _of_key(node: ast.expr | None) -> ast.expr | None:
    """Return what a mapping has under "loss"; another value as it is."""
    if isinstance(node, ast.Dict):
        return next(
            (value for key, value in zip(node.keys, node.values, strict=True) if constant_of(key) == "loss"), node
        )
    return node


def _last_value(step: ast.FunctionDef, name: ast.Name) -> ast.expr:
    made = [node.value for node in walk(step, ast.Assign) if any(dotted(target) == name.id for target in node.targets)]
    return made[-1] if made else name


def never_stepped_by_hand(roles: Roles) -> Iterator[Fault]:
    """A module turns automatic optimization off, and nothing in the file makes a step in its place."""
    for module, step in _modules(roles):
        off = next((node for node in walk(module, ast.Assign) if _turns_off(node)), None)
        if off is None or "step" in {call.method for call in roles.script.calls}:
            continue
        certainty: Certainty = "likely" if roles.uses("optimizers") else "certain"
        says = f"automatic_optimization is off (line {off.lineno}), and training_step of {module.name} makes no step"
        fix = "call manual_backward(loss), step() and zero_grad() there, or leave automatic_optimization on"
        yield fault("no_step", step.lineno, certainty, says, fix=fix, lines=(off.lineno,))


def monitored_never_logged(roles: Roles) -> Iterator[Fault]:
    """A callback waits for a metric that the module never logs."""
    modules = [module for module, _ in _modules(roles)]
    logged = [name for call in roles.script.named("log", "log_dict") for name in _names_logged(roles, call)]
    if len(modules) != 1 or len(modules[0].bases) != 1 or not logged or "" in logged:
        return
    for call in roles.script.named("ModelCheckpoint", "EarlyStopping"):
        monitor = roles.value_of(call.argument("monitor", 0 if call.method == "EarlyStopping" else None))
        if isinstance(monitor, str) and _OF_A_LOADER.sub("", monitor) not in logged:
            says = f"{call.method} monitors {monitor}, and the module logs {', '.join(dict.fromkeys(logged))} alone"
            yield fault("monitored_never_logged", call.line, "certain", says)


def _turns_off(node: ast.Assign) -> bool:
    """Say whether a statement turns automatic optimization off, under whatever name the module has there."""
    if constant_of(node.value) is not False:
        return False
    return any(dotted(target).endswith(".automatic_optimization") for target in node.targets)


def _names_logged(roles: Roles, call: Call) -> list[str]:
    """Return the names under which a call logs metrics; an empty one among them where they are not written out."""
    if not call.owner or "." in call.owner:
        return []  # of a logger, which no callback reads
    first = call.node.args[0] if call.node.args else call.keywords.get("name") or call.keywords.get("dictionary")
    if call.method == "log_dict":
        names = first.keys if isinstance(first, ast.Dict) else [None]
        return [name if isinstance(name := roles.value_of(key), str) else "" for key in names]
    name = roles.value_of(first)
    return [name if isinstance(name, str) else ""]


# Libraries: does one do with what it is given what the name says, where the script shows that it does not?


WITHOUT_FINDINGS = re.compile(
    r"healthy|lesion_?free|no_?(?:lesion|tumou?r|nodule)|empty_(?:mask|label)|negative_(?:case|image|slice|scan)", re.I
)
"""What names images on which there is nothing to find."""
SETS_THE_RATE = ("l2_leaf_reg", "leaf_estimation_iterations", "leaf_estimation_method")
"""Parameters of CatBoost that, once named, keep it from choosing a learning rate. Source: its documentation."""
WHOLE_STEPS = 1e-3
"""Learning rate of RAdam from which gradients of a sum move weights too far. Chosen: the rate that its paper uses."""


def empty_labels_left_out(roles: Roles) -> Iterator[Fault]:
    """Images without a label do not count in MONAI's Dice, and the script has such.

    Source: findings/monai_dice_leaves_out_healthy_images.sh.
    """
    found = WITHOUT_FINDINGS.search(roles.source)
    for call in roles.script.named("DiceMetric") if found and roles.is_imported_from("monai", "DiceMetric") else ():
        if "ignore_empty" not in call.keywords and found is not None:
            says = (
                f"images with an empty label do not count in it, whatever is found on them, and `{found[0]}` is named"
            )
            yield fault("empty_labels_left_out", call.line, "depends", says)


def observers_go_on(roles: Roles) -> Iterator[Fault]:
    """A model in quantization-aware training is evaluated between passes, and its observers learn from those rows.

    Source: findings/evaluation_moves_fake_quantization.sh.
    """
    prepared = roles.script.named("prepare_qat", "prepare_qat_fx", "prepare_qat_pt2e")
    if not prepared or re.search(r"disable_observer|observer_enabled|deepcopy", roles.source):
        return
    for call in roles.script.calls:
        inside = any(len(run.loops) > 1 and any(map(NO_GRADIENTS.search, run.guards)) for run in roles.runs(call))
        if inside and roles.calls_model(call.node) and call.order > prepared[0].order:
            says = (
                f"eval() and no_grad() do not stop the observers that {prepared[0].method}() put into the model: each "
                "evaluation moves the ranges of its quantization"
            )
            yield fault("observers_go_on", call.line, "depends", says, lines=(prepared[0].line,))
            return


def begins_with_whole_gradients(roles: Roles) -> Iterator[Fault]:
    """RAdam is given the gradients of a sum, and its first five steps are not divided by their size.

    Source: findings/radam_begins_with_whole_gradients.sh.
    """
    summed = re.search(r"reduction=['\"]sum['\"]", roles.source)
    limited = roles.uses("clip_grad") or roles.schedules
    for made in roles.optimizers.values() if summed and not limited and roles.trains_by_hand else ():
        call = roles.call_of(made.value)
        if call is None or call.method != "RAdam" or not roles.is_imported_from("torch", call.name.partition(".")[0]):
            continue
        rate = roles.number_of(given) if (given := call.argument("lr", 1)) is not None else WHOLE_STEPS
        if rate is not None and rate >= WHOLE_STEPS:
            says = "the loss is a sum, and the first five steps of RAdam are the learning rate times the whole gradient"
            yield fault("begins_with_whole_gradients", call.line, "depends", says)


def rate_no_longer_chosen(roles: Roles) -> Iterator[Fault]:
    """A parameter of CatBoost is named without a learning rate, which then does not follow rows and rounds.

    Source: findings/catboost_named_default_lowers_the_rate.sh.
    """
    for call in roles.script.calls:
        if not re.fullmatch(r"CatBoost(?:Classifier|Regressor)?", call.method):
            continue
        given = roles.keywords(call)
        if call.method == "CatBoost" and call.node.args:
            given |= dict.fromkeys(re.findall(r"'(\w{1,40})'", ast.unparse(call.node.args[0])), call.node)
        named = [name for name in SETS_THE_RATE if name in given]
        if named and not {"learning_rate", "eta"} & set(given):
            says = (
                f"{named[0]} is named, and so the learning rate is 0.03 for any number of rounds: CatBoost chooses one "
                "by rows and rounds only where this is left out"
            )
            yield fault("rate_no_longer_chosen", call.line, "depends", says)


def annotation_zero(roles: Roles) -> Iterator[Fault]:
    """Annotations that pycocotools evaluates are counted from 0, which stands there for no match.

    Source: findings/coco_annotation_number_zero.sh.
    """
    if not roles.uses("COCOeval"):
        return
    for node in walk(roles.script.tree, ast.Dict):
        entries = {
            constant_of(key): value for key, value in zip(node.keys, node.values, strict=True) if key is not None
        }
        is_annotation = {"id", "image_id"} <= set(entries) and bool({"bbox", "segmentation"} & set(entries))
        if is_annotation and "score" not in entries and _begins_at_zero(roles, entries["id"], node):
            says = "the first annotation has the id 0, which pycocotools takes for no match: what finds it is wrong"
            yield fault("annotation_zero", entries["id"].lineno, "certain", says)


def _begins_at_zero(roles: Roles, node: ast.expr, around: ast.Dict) -> bool:
    """Say whether a number is 0 in the first round: the length of a list before it grows, or a counter."""
    if isinstance(node, ast.Call) and dotted(node.func) == "len" and node.args:
        grows = f"{dotted(node.args[0])}.append"
        return any(call.name == grows and around in call.node.args for call in roles.script.calls)
    if not isinstance(node, ast.Name):
        return constant_of(node) == 0
    loops = [loop for loop in walk(roles.script.tree, ast.For) if around in ast.walk(loop)]
    for loop in loops:
        first = loop.target.elts[0] if isinstance(loop.target, ast.Tuple) and loop.target.elts else loop.target
        counts = loop.iter if isinstance(loop.iter, ast.Call) and len(loop.iter.args) == 1 else None
        if node.id in names_in(loop.target):
            counted = counts is not None and not counts.keywords and dotted(counts.func) in ("enumerate", "range")
            return counted and dotted(first) == node.id
    made = roles.script.made(node.id)
    plain, added = [each for each in made if not each.adds], [each for each in made if each.adds]
    later = added and all(each.line > around.lineno for each in added)
    return bool(later) and len(plain) == 1 and constant_of(plain[0].value) == 0


def target_moved_on(roles: Roles) -> Iterator[Fault]:
    """A target of graphs has "index" in its name, and so the nodes of the graphs before are added to it.

    Source: findings/graph_batches_shift_targets_named_index.sh.
    """
    if "torch_geometric" not in roles.source or "__inc__" in roles.definitions:
        return
    for call in roles.script.named("Data", "HeteroData"):
        for name in call.keywords:
            compared = _is_target(roles, name) if "index" in name and "edge" not in name else None
            if compared is not None:
                says = (
                    f'{name} has "index" in its name: in a batch the number of nodes of the graphs before is added to '
                    f"it, and line {compared.line} takes it for a target"
                )
                yield fault("target_moved_on", call.line, "likely", says, lines=(compared.line,))


def _is_target(roles: Roles, name: str) -> Call | None:
    for call in roles.script.calls:
        target = call.argument("target", 1)
        is_loss = re.search(r"loss|criterion|entropy", call.name, re.IGNORECASE)
        if is_loss and isinstance(target, ast.Attribute) and target.attr == name:
            return call
    return None


def steps_of_each_optimizer(roles: Roles) -> Iterator[Fault]:
    """A Lightning module steps two optimizers itself, and its steps are bounded: each of the two counts.

    Source: findings/lightning_counts_each_optimizer.sh.
    """
    module = re.search(r"automatic_optimization = False", roles.source)
    steps = {step.owner for step in roles.script.named("step") if step.function.endswith(".training_step")}
    optimizers = {
        made.target: made
        for made in roles.script.assignments
        if made.place is not None and made.made_by == "self.optimizers"
    }
    both = sorted(steps & set(optimizers))
    for call in roles.script.named("Trainer") if module and len(both) > 1 else ():
        bound = roles.number_of(given) if (given := call.keywords.get("max_steps")) is not None else None
        if bound is not None and bound > 0:
            says = (
                f"max_steps={bound:g} counts the steps of {' and '.join(both)} together: {bound / len(both):g} batches"
            )
            yield fault("steps_of_each_optimizer", call.line, "depends", says, lines=(optimizers[both[0]].line,))


def logits_by_the_batch(roles: Roles) -> Iterator[Fault]:
    """A metric of torchmetrics is given logits, and decides batch by batch whether they are probabilities.

    Source: findings/torchmetrics_logits_by_the_batch.sh.
    """
    if "torchmetrics" not in roles.source or not roles.uses("BCEWithLogits", "cross_entropy_with_logits"):
        return
    metrics = {made.target for made in roles.script.assignments if _is_binary(made.value)}
    for call in roles.script.calls:
        owner = call.owner if call.method == "update" else call.name
        if owner not in metrics or not call.loops or not call.node.args:
            continue
        outputs = roles.source_of(call.node.args[0], call)
        by_model = any(roles.calls_model(part) for part in walk(outputs, ast.Call))
        if by_model and not re.search(r"sigmoid|prob|[<>]|round", ast.unparse(outputs)):
            says = (
                f"{owner} is given logits, and cuts a batch whose logits all lie between 0 and 1 at 0.5, as it takes "
                "them for probabilities"
            )
            yield fault("logits_by_the_batch", call.line, "depends", says)
            return


def _is_binary(node: ast.expr) -> bool:
    """Say whether a value is a metric of two classes that takes logits or probabilities."""
    name = last_name(node)
    if not isinstance(node, ast.Call) or not re.search(
        r"AUROC|Accuracy|AveragePrecision|F1Score|Precision|Recall", name
    ):
        return False
    tasks = {constant_of(keyword.value) for keyword in node.keywords if keyword.arg == "task"}
    return name.startswith(("Binary", "Multilabel")) or bool(tasks & {"binary", "multilabel"})


def negative_labels_counted(roles: Roles) -> Iterator[Fault]:
    """Places are marked by a negative label for Optax, which takes it for a class or pushes all classes down.

    Source: findings/labels_outside_of_the_classes.sh.
    """
    for mean in roles.script.named("mean"):
        owner = mean.node.func.value if isinstance(mean.node.func, ast.Attribute) else None
        given = mean.node.args[0] if mean.node.args else owner
        losses = roles.source_of(given, mean) if given is not None else None
        call = roles.call_of(losses)
        if call is None or call.method != "softmax_cross_entropy_with_integer_labels":
            continue
        labels = call.argument("labels", 1)
        made = roles.spelled_out(labels) if labels is not None else None
        chosen = made.args if isinstance(made, ast.Call) and dotted(made.func).endswith("where") else []
        marks = [mark for part in chosen if isinstance(mark := constant_of(part), int) and mark < 0]
        if marks and not {"where"} & {*mean.keywords, *call.keywords}:
            says = f"labels of {marks[0]} count in the mean: {call.name}() has no label that it leaves out"
            yield fault("negative_labels_counted", call.line, "likely", says)


def alphabet_of_a_sample(roles: Roles) -> Iterator[Fault]:
    """A byte-level tokenizer is trained without the alphabet of bytes: what its sample lacks has no token.

    Source: findings/byte_level_tokenizers_drop_unseen_digits.sh.
    """
    of_bytes = roles.script.named("ByteLevel") and roles.is_imported_from("tokenizers", "ByteLevel")
    for call in roles.script.named("BpeTrainer") if of_bytes else ():
        if "initial_alphabet" not in call.keywords and not call.is_spread and "alphabet" not in roles.source:
            says = (
                "only bytes that are in the sample get a token: digits and letters that it lacks are left out of texts"
            )
            yield fault("alphabet_of_a_sample", call.line, "depends", says)


LEAST_DECAY_OF_WEIGHTS = 0.01
"""Share of each weight that a decay takes in each step. Chosen: weights halve in seventy steps."""


def decay_without_rate(roles: Roles) -> Iterator[Fault]:
    """The weight decay of Optax' Adafactor is meant as that of AdamW, and is not multiplied by the learning rate.

    Source: findings/adafactor_decays_without_the_rate.sh.
    """
    for call in roles.script.named("adafactor") if "optax" in roles.source else ():
        decay = _Given(roles, call).number("weight_decay_rate")
        if decay is not None and decay >= LEAST_DECAY_OF_WEIGHTS:
            says = f"each step takes {decay} of each weight: Optax' adafactor does not multiply it by the learning rate"
            yield fault("decay_without_rate", call.line, "likely", says)


OWN_MASTER = re.compile(r"master|stochastic|autocast|from_pretrained|lora|get_peft|quant", re.IGNORECASE)
"""What keeps or rounds weights otherwise, or trains others than those that are cast."""


def adam_of_bf16_weights(roles: Roles) -> Iterator[Fault]:
    """All weights of a model are bf16, and PyTorch's Adam updates them: small updates are rounded away.

    Its second moment is bf16 as well, and never comes down after a large gradient.
    Source: findings/adam_of_bf16_weights_never_forgets.sh.
    """
    if OWN_MASTER.search(roles.source):
        return
    for call in roles.script.named("Adam", "AdamW"):
        of_torch = call.owner in ("", "optim", "torch.optim") and all(
            roles.is_imported_from("torch", name) for name in (call.method, "optim")
        )
        first = ast.unparse(call.node.args[0]) if call.node.args else ""
        model = first.removesuffix(".parameters()")
        if of_torch and model != first and _is_cast_to_bf16(roles, model, call):
            says = f"{model} is in bf16 as a whole: updates below 1/256 of a weight are lost, a decay of 0.999 as well"
            yield fault("adam_of_bf16_weights", call.line, "depends", says)


def _is_cast_to_bf16(roles: Roles, model: str, before: Call) -> bool:
    """Say whether a model is cast to bf16 before a call, where it is made or later, and to nothing else."""
    made = roles.script.assigned(model, before.order)
    casts = [
        call
        for call in roles.script.named("to", "bfloat16", "float", "half")
        if call.order <= before.order
        and (call.owner == model or (made is not None and any(part is call.node for part in ast.walk(made.value))))
    ]
    to = [call.method if call.method != "to" else ast.unparse(call.node) for call in casts]
    kinds = [text for text in to if text in ("bfloat16", "float", "half") or "float" in text]
    return bool(kinds) and kinds[-1].rpartition("(")[2].rstrip(")").endswith("bfloat16")


def merges_dropped_in_evaluation(roles: Roles) -> Iterator[Fault]:
    """A tokenizer has a dropout of merges, which nothing ends: it cuts texts at random in evaluation as well.

    Source: findings/tokenizers_drop_merges_in_evaluation.sh.
    """
    ended = any(assignment.target.endswith("model.dropout") for assignment in roles.script.assignments)
    if ended or "tokenizers" not in roles.source:
        return
    for call in roles.script.named("BPE"):
        dropout = _Given(roles, call).number("dropout")
        if dropout:
            says = "a tokenizer has no evaluation mode: it drops merges there, too, and after it is saved and loaded"
            yield fault("merges_dropped_in_evaluation", call.line, "depends", says)


def best_checkpoint_is_nan(roles: Roles) -> Iterator[Fault]:
    """Orbax keeps the best checkpoint alone, and takes one whose metric is NaN for the best.

    Source: findings/orbax_deletes_the_best_checkpoint_for_nan.sh.
    """
    if re.search(r"nan|isfinite", roles.source, re.IGNORECASE):
        return
    for call in roles.script.named("CheckpointManagerOptions"):
        given = _Given(roles, call)
        if "best_fn" in given and given.value("max_to_keep") == 1:
            says = "a checkpoint whose metric is NaN counts as the best, and the only other one is deleted"
            yield fault("best_checkpoint_is_nan", call.line, "depends", says)


def classes_numbered_apart(roles: Roles) -> Iterator[Fault]:
    """Two splits are given numbers of classes each by itself: a class that one lacks shifts the numbers there.

    Source: findings/class_encode_column_sorts_numbers_as_words.sh.
    """
    first: dict[str, tuple[str, Call]] = {}
    for call in roles.script.named("class_encode_column"):
        column, rows = _Given(roles, call).text("column", 0), ast.unparse(call.node.func).rpartition(".")[0]
        other, earlier = first.setdefault(column, (rows, call))
        if column and other != rows and earlier.function == call.function:
            says = f"{other} and {rows} number their classes apart: a class that one lacks shifts the rest"
            yield fault("classes_numbered_apart", call.line, "depends", says, lines=[earlier.line])


COUNTED_BY_KERAS = ("compile", "fit", "evaluate")
"""Methods of a Keras model that count means."""


def means_counted_in_half(roles: Roles) -> Iterator[Fault]:
    """Keras counts the means of an epoch in the type of `set_floatx`, in which long sums stop.

    Source: findings/keras_bfloat16_means_by_batch_size.sh.
    """
    if not any(call.method in COUNTED_BY_KERAS and call.owner for call in roles.script.calls):
        return
    for call in roles.script.named("set_floatx"):
        kind = roles.value_of(call.argument("value", 0))
        if kind in ("bfloat16", "float16"):
            says = (
                f"the means of an epoch are counted in {kind} as well, where sums and counts stop: they depend on the "
                "batch size"
            )
            yield fault("means_counted_in_half", call.line, "certain", says)


_MADE_BY_NUMPY = re.compile(r"^(?:np|numpy)\.(?:as)?array\(")
_IN_BFLOAT16 = re.compile(r"(?:astype\(|dtype=|, )[\w.'\"]*bfloat16['\"]?\)+$")
"""What ends as an array of NumPy in bfloat16."""


def numpy_sums_in_bfloat16(roles: Roles) -> Iterator[Fault]:
    """NumPy adds numbers of bfloat16 one by one in that type: a sum of 256 equal numbers is the last that grows.

    Source: findings/numpy_means_of_bf16_fall_with_length.sh.
    """
    for call in roles.script.named("mean", "sum"):
        by_function = call.owner in ("np", "numpy")
        array = call.argument("a", 0) if by_function else getattr(call.node.func, "value", None)
        if array is None or {"dtype", "axis"} & set(call.keywords) or len(call.node.args) > by_function:
            continue
        made = ast.unparse(roles.source_of(array, call))
        if _MADE_BY_NUMPY.search(made) and _IN_BFLOAT16.search(made):
            says = f"NumPy adds {ast.unparse(array)[:40]} up in bfloat16, in which a sum of more than 256 numbers stops"
            yield fault("numpy_sums_in_bfloat16", call.line, "likely", says)


_BATCH_NORM = re.compile(r"\b(?:Sync|Lazy)?BatchNorm(?:\dd)?\(")


def checkpointed_statistics(roles: Roles) -> Iterator[Fault]:
    """Gradient checkpointing runs a block with BatchNorm twice, and its running means take in each batch twice.

    Source: findings/checkpointed_layers_count_a_batch_twice.sh.
    """
    of_torch = "torch.utils.checkpoint" in roles.source or "torch.utils import checkpoint" in roles.source
    for call in roles.script.named("checkpoint", "checkpoint_sequential") if of_torch else ():
        block = call.argument("function" if call.method == "checkpoint" else "functions", 0)
        text = _made_of(roles, block, call) if block is not None else ""
        if block is not None and _BATCH_NORM.search(text) and "momentum" not in text:
            name = ast.unparse(block)[:40]
            says = f"{name} has BatchNorm, which takes in each batch twice: its momentum acts like 0.19"
            yield fault("checkpointed_statistics", call.line, "depends", says)


def _made_of(roles: Roles, block: ast.expr, call: Call) -> str:
    """Return what a block is made of: the text of its value, and of the class of this file that it is made by."""
    made = roles.script.assigned(dotted(block), call.order) if dotted(block) else None
    value = roles.source_of(block, call) if made is None else made.value
    owner = roles.helper(value)
    return ast.unparse(value) + (ast.unparse(owner) if isinstance(owner, ast.ClassDef) else "")


def average_warms_up_anyway(roles: Roles) -> Iterator[Fault]:
    """The averages of diffusers and torch-ema begin with a lower decay, also where no warm-up is asked for.

    Source: findings/averages_that_warm_up_unasked.sh.
    """
    for call in roles.script.named("EMAModel") if "diffusers" in roles.source else ():
        given = _Given(roles, call)
        decay = given.number("decay", 1)
        if decay is not None and decay < 1 and given.value("use_ema_warmup") is False and "min_decay" not in given:
            says = (
                f"use_ema_warmup=False leaves a warm-up: the decay is at most (1 + steps) / (10 + steps), and {decay} "
                f"from step {(10 * decay - 1) / (1 - decay):.0f} on"
            )
            yield fault("average_warms_up_anyway", given.line("use_ema_warmup"), "depends", says)


_AGAINST_THE_BATCH = re.compile(r"^(?:Cached)?MultipleNegatives(?:Symmetric)?RankingLoss$|^(?:Cached)?GISTEmbedLoss$")


def repeated_rows_as_negatives(roles: Roles) -> Iterator[Fault]:
    """A loss takes the other rows of a batch for wrong answers, and nothing keeps one text out of a batch twice.

    Source: sbert.net, "Samplers", which recommends `BatchSamplers.NO_DUPLICATES` for such losses.
    """
    losses = [call for call in roles.script.calls if _AGAINST_THE_BATCH.match(call.method)]
    for call in roles.script.named("SentenceTransformerTrainingArguments") if losses else ():
        if _Given(roles, call).is_written_out("batch_sampler"):
            says = (
                f"{losses[0].method} takes all other rows of a batch for wrong answers, and without a batch_sampler "
                "a batch may hold the right one twice"
            )
            yield fault("repeated_rows_as_negatives", call.line, "depends", says, lines=[losses[0].line])


_TAKES_THE_BASE_APART = re.compile(r"pissa(?:_niter_\d+)?|olora")


def reference_taken_apart(roles: Roles) -> Iterator[Fault]:
    """DPO takes the model without its adapter for the reference, and the adapter begins with a part of the model.

    Source: findings/pissa_takes_the_reference_model_apart.sh.
    """
    for config in roles.script.named("LoraConfig"):
        start = _Given(roles, config).text("init_lora_weights")
        for call in roles.script.named("DPOTrainer") if _TAKES_THE_BASE_APART.fullmatch(start) else ():
            given = call.argument("ref_model", 1)
            if not call.is_spread and (given is None or (isinstance(given, ast.Constant) and given.value is None)):
                says = (
                    "without a ref_model the reference is the model without its adapter, and "
                    f"init_lora_weights={start} takes what the adapter begins with out of it: nobody trained the rest"
                )
                yield fault("reference_taken_apart", call.line, "certain", says, lines=[config.line])


_LOADS_A_MODEL = ("load_model", "load_weights", "from_pretrained", "load_state_dict")
_TRAINS_IN_KERAS = ("fit", "train_on_batch", "minimize", "apply_gradients", "apply", "step")


def weights_made_of_gradients(roles: Roles) -> Iterator[Fault]:
    """FTRL makes each weight anew of the gradients that it has seen, and is given weights that are trained already.

    Source: findings/ftrl_drops_the_weights_it_starts_from.sh.
    """
    loaded = roles.script.named(*_LOADS_A_MODEL)
    for call in roles.script.named("Ftrl", "FTRL", "compile") if loaded else ():
        if call.method == "compile" and str(_Given(roles, call).text("optimizer", 0)).lower() != "ftrl":
            continue
        trains = [
            each for each in roles.script.named(*_TRAINS_IN_KERAS) if each.order > max(call.order, loaded[0].order)
        ]
        if trains:
            says = (
                "FTRL makes each weight anew of the gradients it has seen: with its first step the loaded ones are gone"
            )
            yield fault("weights_made_of_gradients", call.line, "likely", says, lines=[loaded[0].line])


_OPTIONS_OF_OPTIMIZERS = ("weight_decay", "weight_decouple", "momentum", "nesterov", "fixed_decay", "maximize")
_WITHOUT_DECAY = ("SM3", "AdaShift", "Amos", "A2Grad", "MSVAG")
ALMOST_A_NAME = 0.9
"""Share of letters in common from which a name is another misspelled. Chosen: `weight_decay_1d` is one of its own."""


def options_left_out(roles: Roles) -> Iterator[Fault]:
    """An optimizer of pytorch-optimizer is given an option that it lacks, which it takes and leaves out.

    Source: findings/optimizers_that_take_any_option.sh.
    """
    imports = [node for node in walk(roles.script.tree, ast.ImportFrom) if node.module == "pytorch_optimizer"]
    names = {alias.asname or alias.name: alias.name for node in imports for alias in node.names}
    for call in roles.script.calls:
        kind = names.get(call.name) or call.name.removeprefix("pytorch_optimizer.")
        if call.name not in names and kind == call.name:
            continue
        for option in call.keywords:
            meant = get_close_matches(option, _OPTIONS_OF_OPTIMIZERS, n=1, cutoff=ALMOST_A_NAME)
            if option not in _OPTIONS_OF_OPTIMIZERS and meant:
                says = f"{kind} takes any option and leaves out what it lacks: {option} is not {meant[0]}"
                yield fault("options_left_out", call.line, "certain", says, fix=f"write {meant[0]}")
            elif option == "weight_decay" and kind in _WITHOUT_DECAY and _Given(roles, call).number(option) != 0:
                says = f"{kind} has no weight decay: it takes the option, and decays nothing"
                yield fault("options_left_out", call.line, "certain", says)


def equinox_in_training_mode(roles: Roles) -> Iterator[Fault]:
    """A model of Equinox is evaluated with dropout or the statistics of a batch, or with averages that begin too high.

    Source: docs.kidger.site/equinox, "Training/Inference"; findings/equinox_evaluates_flat_for_hundreds_of_steps.sh.
    """
    if "equinox" not in roles.source:
        return
    layers = roles.script.named("Dropout", "BatchNorm")
    for call in roles.script.calls:
        if call.constant("mode") == "batch" and "BatchNorm" in ast.unparse(call.node.func):
            says = "with mode='batch' the running variance begins far too high, whatever the batches have"
            yield fault("running_variance_begins_high", call.line, "depends", says)
    evaluating = [call for call in roles.script.calls if EVALUATES.search(call.function)]
    if layers and evaluating and not re.search(r"\binference(?:_mode)?\b", roles.source):
        says = (
            f"the model is evaluated, and inference_mode() is called nowhere: {layers[0].method} stays in training mode"
        )
        fix = "evaluate equinox.nn.inference_mode(model)"
        line = evaluating[0].line
        yield fault("evaluates_in_training_mode", line, "likely", says, fix=fix, lines=[layers[0].line])


# Has what the script writes an effect: conditions that never hold, unused results, hooks that nothing calls?


IN_PLACE_BY_UNDERSCORE = frozenset({
    "clamp", "clamp_max", "clamp_min", "detach", "div", "index_add", "index_copy", "index_fill", "lerp", "masked_fill",
    "masked_scatter", "mul", "nan_to_num", "scatter", "scatter_add", "sub",
})  # fmt: skip
"""Methods of tensors that give a new one, and have a twin with `_` at its end that changes the tensor itself."""
OF_FUNCTIONAL = re.compile(r"^(?:torch\.)?nn\.functional\.[a-z]\w*[a-z0-9]$|^torch\.(?:clamp|where|lerp)$")
"""Functions that give a new tensor, where nothing says that they write into one."""
IMPORTS_FUNCTIONAL = re.compile(r"(?:import torch\.nn\.functional as|from torch\.nn import functional as) (\w{1,40})")
OF_WEIGHTS = re.compile(r"zip\(.{1,200}(?:parameters|state_dict)\(\)")
"""What a loop is over that averages the weights of two networks."""
OF_OTHERS = frozenset({"out", "inplace", "fill_value", "axis"})
"""Arguments of functions that write into what they are given, and of tables."""
SPLITS = re.compile(r"^(?:train\w*|val\w*|dev|test\w*|eval\w*|valid\w*)$", re.IGNORECASE)
OF_PARAMETERS = re.compile(r"\.(?:named_)?(?:parameters|buffers)\(|\.state_dict\(\)")
"""What a loop is over that goes through the tensors of a model."""
RATE_ATTRIBUTES = frozenset({"lr", "learning_rate"})
"""What those of other libraries call their rate, such as those of Keras."""
MIN_KEYS_FIRED = 2
"""Events whose handlers are called, from which on the others count as never fired. Chosen: a setting may choose one."""
OPEN_BASES = ("object", "ABC", "abc.ABC", "Protocol", "typing.Protocol")
"""Bases of other files that call none of the methods of a class."""


def never_holds(roles: Roles) -> Iterator[Fault]:
    """Two conditions on the same counter, one inside of the other, leave no number for which both hold."""
    for outer in walk(roles.script.tree, ast.If):
        first = [asked for asked in _remainders(roles, outer.test) if not _is_changed(asked.counter, outer.body)]
        for inner in (node for part in outer.body for node in walk(part, ast.If) if first):
            for second in _remainders(roles, inner.test):
                if any(_exclude(remainder, second) for remainder in first):
                    says = f"`{ast.unparse(inner.test)[:60]}` never holds where `{ast.unparse(outer.test)[:60]}` does"
                    yield fault("never_holds", inner.lineno, "likely", says)


def _is_changed(counter: str, body: list[ast.stmt]) -> bool:
    """Say whether statements give a counter, or a part of what it is counted by, another value."""
    named = {dotted(part) for part in ast.walk(ast.parse(counter, mode="eval"))} - {"", "self"}
    return any(
        dotted(node) in named
        for part in body
        for node in walk(part, ast.Name, ast.Attribute)
        if isinstance(node.ctx, ast.Store)
    )


def counter_passes_by(roles: Roles) -> Iterator[Fault]:
    """A counter that grows by several at once never has the remainder that a condition asks for."""
    for node in walk(roles.script.tree, ast.If):
        for asked in _remainders(roles, node.test):
            grown = _grows_by(roles, asked.counter, node.lineno)
            if grown is not None and _exclude(asked, grown):
                says = f"{asked.counter} grows by {grown.every} at a time: `{ast.unparse(node.test)[:60]}` never holds"
                yield fault("never_holds", node.lineno, "likely", says)


def _grows_by(roles: Roles, counter: str, line: int) -> _Remainder | None:
    """Return by how much a counter grows at a time and what it begins with; None where that is not one number each.

    One of another function or class has the name alone in common.
    """
    made = roles.script.made(counter)
    own = counter.startswith("self.")
    owners = {assignment.function.rpartition(".")[0] if own else assignment.function for assignment in made}
    scope = roles.definitions.get(last_part(next(iter(owners)))) if len(owners) == 1 else None
    if owners != {""} and (scope is None or not scope.lineno <= line <= (scope.end_lineno or line)):
        return None
    if counter in roles.loop_names:
        return None
    steps = {_number(roles, assignment.value) for assignment in made if assignment.adds}
    first = {_number(roles, assignment.value) for assignment in made if not assignment.adds}
    if len(steps) != 1 or len(first) != 1:
        return None
    step, begin = steps.pop(), first.pop()
    return _Remainder(counter, step, begin % step) if step and step > 1 and begin is not None else None


class _Remainder(NamedTuple):
    """A test `counter % every == rest`."""

    counter: str
    every: int
    rest: int


def _exclude(remainder: _Remainder, other: _Remainder) -> bool:
    """Say whether no number has both remainders: they differ by what their common divisor does not divide."""
    return (
        remainder.counter == other.counter
        and (remainder.rest - other.rest) % math.gcd(remainder.every, other.every) != 0
    )


def _remainders(roles: Roles, test: ast.expr) -> Iterator[_Remainder]:
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        for part in test.values:
            yield from _remainders(roles, part)
    elif isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq):
        left, rest = test.left, _number(roles, test.comparators[0])
        if is_operation(left, ast.Mod):
            every = _number(roles, left.right)
            if every and rest is not None:
                counter, shift = _counter(left.left)
                yield _Remainder(counter, every, (rest - shift) % every)


def _counter(node: ast.expr) -> tuple[str, int]:
    """Return a counter and what is added to it: ("step", 1) of `step + 1`."""
    if is_operation(node, ast.Add):
        added = constant_of(node.right)
        if isinstance(added, int):
            return ast.unparse(node.left), added
    return ast.unparse(node), 0


def _number(roles: Roles, node: ast.expr) -> int | None:
    value = roles.number_of(node)
    return value if isinstance(value, int) else None


def result_unused(roles: Roles) -> Iterator[Fault]:
    """A new tensor is computed, and nothing takes it: what was meant to change stays as it is."""
    nodes = list(ast.walk(roles.script.tree))
    functional = dict.fromkeys(IMPORTS_FUNCTIONAL.findall(roles.source), "nn.functional")
    averaged = [node for node in nodes if isinstance(node, ast.For) and OF_WEIGHTS.search(ast.unparse(node.iter))]
    for node in nodes:
        if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Call):
            continue
        call = node.value
        name, method = dotted(call.func), last_name(call)
        is_plot = method == "scatter" and len(call.args) < 3  # that of a tensor has a dimension, indices and values
        if {keyword.arg for keyword in call.keywords} & OF_OTHERS or is_plot:
            continue
        is_tensors = name.partition(".")[0] not in roles.imported and name.rpartition(".")[0] not in roles.optimizers
        known = method in IN_PLACE_BY_UNDERSCORE or _adds_to_new(call, method)
        if known and isinstance(call.func, ast.Attribute) and is_tensors:
            says = f"`{ast.unparse(call)[:60]}` gives a new tensor that nothing takes: `{method}_` changes the tensor"
            if any(loop.lineno <= node.lineno <= (loop.end_lineno or 0) for loop in averaged):
                yield fault("ema_never_updated", node.lineno, "certain", says)
            else:
                yield fault("result_unused", node.lineno, "likely", says)
        elif OF_FUNCTIONAL.search(re.sub(r"^\w+", lambda first: functional.get(first[0], first[0]), name)):
            says = f"`{ast.unparse(call)[:60]}` gives a new tensor that nothing takes"
            yield fault("result_unused", node.lineno, "likely", says)


def _adds_to_new(call: ast.Call, method: str) -> bool:
    """Say whether a call adds to a new tensor, `a.mul(m).add(b)`: an `add` of its own may be that of a set."""
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    new = isinstance(owner, ast.Call) and last_name(owner) in IN_PLACE_BY_UNDERSCORE
    return method == "add" and new


def parameter_renamed(roles: Roles) -> Iterator[Fault]:
    """A loop over the tensors of a model gives its variable a new value that nothing reads: no tensor changes."""
    for loop in walk(roles.script.tree, ast.For):
        if not OF_PARAMETERS.search(ast.unparse(loop.iter)):
            continue
        names = {node.id for node in walk(loop.target, ast.Name)}
        last = loop.body[-1]
        if not isinstance(last, ast.Assign) or len(last.targets) != 1 or not isinstance(last.targets[0], ast.Name):
            continue
        name = last.targets[0].id
        if name in names and not _is_read_after(roles, loop, name):
            says = f"`{ast.unparse(last)[:60]}` gives the name {name} another value, and changes no tensor"
            yield fault("parameter_renamed", last.lineno, "certain", says)


def _is_read_after(roles: Roles, loop: ast.For, name: str) -> bool:
    """Say whether a name is read behind a loop in the function around it, or in the file where none is around."""
    functions = [*walk(roles.script.tree, ast.FunctionDef)]
    end = loop.end_lineno or loop.lineno
    around = [node.end_lineno or 0 for node in functions if node.lineno < loop.lineno <= end <= (node.end_lineno or 0)]
    until = min(around, default=None)
    return any(end < node.lineno and (until is None or node.lineno <= until) for node, _ in roles.reads.get(name, ()))


def rate_that_nobody_reads(roles: Roles) -> Iterator[Fault]:
    """A learning rate is set as an attribute of an optimizer of PyTorch, which reads `param_groups` alone."""
    made_by = {name: made.made_by.partition(".")[0] for name, made in roles.optimizers.items()}
    of_torch = {name for name, first in made_by.items() if roles.is_imported_from("torch", first)}
    named = [node for node in walk(roles.script.tree, ast.Attribute) if node.attr in RATE_ATTRIBUTES]
    read = {dotted(node) for node in named if isinstance(node.ctx, ast.Load)}
    for node in named:
        if isinstance(node.ctx, ast.Store) and dotted(node.value) in of_torch and dotted(node) not in read:
            says = f"`{dotted(node)} = ...` changes no step: the optimizer reads its rate from `param_groups`"
            yield fault("rate_that_nobody_reads", node.lineno, "certain", says)


def argument_unused(roles: Roles) -> Iterator[Fault]:
    """A function never reads an argument that its callers give different values for, such as which split to load."""
    for function in roles.functions.values():
        read = {"self", "cls", *(node.id for node in walk(function, ast.Name))}
        names = [parameter.arg for parameter in (*function.args.args, *function.args.kwonlyargs)]
        unread = [name for name in names if name not in read and not name.startswith("_")]
        for name in unread if unread and not _may_be_called_elsewhere(roles, function) else ():
            given = _values(roles, function, name)
            if len({repr(value) for value in given}) < 2:
                continue
            says = f"{function.name}() never reads {name}, for which it is given {' and '.join(map(repr, given[:3]))}"
            splits = all(isinstance(value, str) and SPLITS.search(value) for value in given)
            if splits:
                yield fault("same_data", function.lineno, "likely", f"{says}: both get the same rows")
            else:
                yield fault("argument_unused", function.lineno, "depends", says)


def _may_be_called_elsewhere(roles: Roles, function: ast.FunctionDef) -> bool:
    """Say whether a function is a stub, is handed on as a value, or takes the place of one of another class."""
    body = [node for node in function.body if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))]
    stub = not body or all(isinstance(node, ast.Pass | ast.Raise) for node in body)
    called = {id(call.node.func) for call in roles.script.calls}
    handed_on = any(id(node) not in called for node, _ in roles.reads.get(function.name, ()))
    inherits = any(
        isinstance(owner, ast.ClassDef) and owner.bases and function in owner.body
        for owner in ast.walk(roles.script.tree)
    )
    return stub or handed_on or inherits or bool(function.decorator_list) or "locals()" in ast.unparse(function)


def _values(roles: Roles, function: ast.FunctionDef, name: str) -> list[object]:
    """Return the constants that a function is given for a parameter; nothing if any call gives something else."""
    names = parameters_of(function)
    place = names.index(name) if name in names else None
    calls = [
        call
        for call in roles.script.named(function.name)
        if not any(isinstance(arg, ast.Starred) for arg in call.node.args)
    ]
    values = [constant_of(given) for call in calls if (given := call.argument(name, place)) is not None]
    return [] if None in values else values


def handler_never_called(roles: Roles) -> Iterator[Fault]:
    """A function handles an event that nothing fires, while handlers of others are called."""
    trace = roles.trace
    by_registry: dict[ast.AST, list[Registered]] = {}
    for registered in trace.registered if trace.is_complete else ():
        by_registry.setdefault(registered.node, []).append(registered)
    for handlers in by_registry.values():
        fired = {handler.key for handler in handlers if handler.function in trace.reached}
        for handler in handlers if len(fired) >= MIN_KEYS_FIRED else ():
            if handler.key in fired or handler.function in trace.reached or not handler.through:
                continue
            name = getattr(handler.function, "name", "this function")
            says = f"{name} handles {str(handler.key).rpartition('.')[2]}, which nothing fires: it is never called"
            yield fault("handler_never_called", getattr(handler.through[-1], "lineno", 0), "likely", says)


def hook_never_called(roles: Roles) -> Iterator[Fault]:
    """A class of hooks has one of a name that nothing calls, and its base class has others that are called."""
    trace, classes = roles.trace, {node.name: node for node in roles.script.tree.body if isinstance(node, ast.ClassDef)}
    asked = [name for call in roles.script.named("getattr") for _, name in trace.sides.get(id(call.node), ())]
    follows = trace.is_complete and all(isinstance(name, Constant) for name in asked)
    words = _words_of(roles.script.tree) if follows else set()
    called = {getattr(function, "name", "") for function in trace.reached}
    for made in {made.definition for made in trace.objects if made.definition} if words else ():
        bases = [ast.unparse(base) for base in made.bases]
        inherited = [method for base in bases for method in _methods(classes.get(base))]
        ends = [ast.unparse(base) for name in bases if name in classes for base in classes[name].bases]
        fired = [method for method in inherited if method.name in called and _is_empty(method)]
        if len({method.name for method in fired}) < MIN_KEYS_FIRED or not {*ends, *bases} <= {*classes, *OPEN_BASES}:
            continue
        for method in _methods(made):
            is_hook = any(
                _first_word(method) == _first_word(known) and len(method.args.args) == len(known.args.args)
                for known in fired
            )
            if is_hook and method.name not in words | called | {known.name for known in inherited}:
                says = (
                    f"{method.name} is a hook of {made.name} that nothing calls: {fired[0].name} and others are called"
                )
                yield fault("handler_never_called", method.lineno, "likely", says)


def _methods(definition: ast.ClassDef | None) -> list[ast.FunctionDef]:
    return [part for part in (definition.body if definition else ()) if isinstance(part, ast.FunctionDef)]


def _is_empty(method: ast.FunctionDef) -> bool:
    return all(
        isinstance(part, ast.Pass) or (isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant))
        for part in method.body
    )


def _first_word(method: ast.FunctionDef) -> str:
    """Return what the names of hooks begin with: "on" of `on_step_end`; the name where it has one word."""
    return method.name.partition("_")[0]


def _words_of(tree: ast.Module) -> set[str]:
    """Return the names and texts by which a script may call a method."""
    names = {getattr(node, "attr", getattr(node, "id", "")) for node in ast.walk(tree)}
    return names | {str(node.value) for node in walk(tree, ast.Constant)}
