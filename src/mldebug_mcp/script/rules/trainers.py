"""Are the arguments of optimizers and trainers in agreement, and the hooks of a framework as it calls them?"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from mldebug_mcp.models.script import Certainty
from mldebug_mcp.script.calls import Call, constant_of, dotted, values_returned
from mldebug_mcp.script.faults import Fault, fault
from mldebug_mcp.script.library import CUT
from mldebug_mcp.script.metrics import better, better_of, is_below_zero
from mldebug_mcp.script.roles import Roles, entries_of
from mldebug_mcp.script.values import facts_of

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
            yield from _contradictions(given)
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
        return None not in {keyword.arg for keyword in self.call.node.keywords} and name not in self._roles.source

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
    rate = (
        given.number("lr", 1)
        if call.method in ("Adam", "AdamW", "SGD", "NAdam", "RAdam", "Lion")
        else given.number("learning_rate")
        if re.search(r"(?:Arguments|Config)$", call.name)
        else None
    )
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


def _contradictions(given: _Given) -> Iterator[Fault]:
    if given.value("fp16") is True and given.value("bf16") is True:
        says = "fp16 and bf16 are both on, and exclude each other"
        yield fault("two_precisions", given.line("bf16"), "certain", says)
    yield from _warmup(given)
    yield from _best_model(given)
    yield from _groups_and_pairs(given)


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
    study = roles.call_of(made.value) if made is not None and isinstance(made.value, ast.Call) else None
    if study is None or study.method != "create_study" or None in {each.arg for each in study.node.keywords}:
        return "", ""
    given = _Given(roles, study)
    if "directions" in given or ("direction" in given and not given.text("direction")):
        return "", ""
    return dotted(call.node.args[0]), given.text("direction") or "minimize"


def _side_returned(roles: Roles, name: str) -> str:
    """Return on which side what a function gives is better, where it gives one thing alone."""
    values = values_returned(roles.definitions.get(name))
    value = values[0] if len(values) == 1 else None
    return better_of(roles, value, name) if value is not None else ""


def _manual_optimization(roles: Roles) -> Iterator[Fault]:
    """Yield what the trainer of Lightning is given that it cannot do for a module that steps its optimizers itself."""
    off = [
        assignment
        for assignment in roles.script.assignments
        if assignment.target == "self.automatic_optimization" and constant_of(assignment.value) is False
    ]
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
        if not isinstance(made.value, ast.Call) or not dotted(made.value.func).endswith("ReduceLROnPlateau"):
            continue
        call = roles.call_of(made.value)
        if call is None:
            continue
        given = _Given(roles, call)
        mode = given.text("mode", 1) or "min"
        is_relative = (
            "threshold" not in given and "threshold_mode" not in given and len(call.node.args) <= PLATEAU_BY_PLACE
        )
        for step in roles.schedule_steps:
            if step.owner.rpartition(".")[2] != name.rpartition(".")[2] or not step.node.args:
                continue
            if is_relative and is_below_zero(roles, step.node.args[0], step.function):
                says = (
                    f"{name} waits for a plateau of {ast.unparse(step.node.args[0])[:60]}, which is below zero: its "
                    "threshold is relative, so a value that stands still counts as better"
                )
                yield fault("plateau_below_zero", step.line, "likely", says, lines=(made.line,))
            metric = dotted(step.node.args[0]).rpartition(".")[2]
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
            yield from _of_step(roles, module, step)


def _modules(roles: Roles) -> Iterator[tuple[ast.ClassDef, ast.FunctionDef]]:
    """Yield the modules of Lightning that stand in the file, each with its training step."""
    for module in ast.walk(roles.script.tree):
        bases = [dotted(base).rpartition(".")[2] for base in module.bases] if isinstance(module, ast.ClassDef) else []
        if not isinstance(module, ast.ClassDef) or "LightningModule" not in bases:
            continue
        step = next((node for node in module.body if isinstance(node, ast.FunctionDef) and node.name == STEP), None)
        if step is not None:
            yield module, step


def _of_step(roles: Roles, module: ast.ClassDef, step: ast.FunctionDef) -> Iterator[Fault]:
    returned = [node for node in ast.walk(step) if isinstance(node, ast.Return) and node.value is not None]
    yields = any(isinstance(node, ast.Raise | ast.Yield) for node in ast.walk(step))
    if not returned and not yields and len(step.body) > 1:
        says = f"training_step of {module.name} returns no loss: Lightning makes no step"
        yield fault("no_backward", step.lineno, "certain", says, fix="return the loss")
    for node in returned:
        value = _of_key(node.value)
        source = _last_value(step, value) if isinstance(value, ast.Name) else value
        method = dotted(source.func).rpartition(".")[2] if isinstance(source, ast.Call) else ""
        if isinstance(source, ast.Call) and isinstance(source.func, ast.Attribute) and method in CUT:
            says = f"the loss that training_step returns is cut off from the model by {method}()"
            yield fault("loss_cut_off", node.lineno, "certain", says)
        if isinstance(source, ast.BinOp) and isinstance(source.op, ast.Div):
            yield from _divided(roles, source)


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
    made = [
        node.value
        for node in ast.walk(step)
        if isinstance(node, ast.Assign) and any(dotted(target) == name.id for target in node.targets)
    ]
    return made[-1] if made else name


def never_stepped_by_hand(roles: Roles) -> Iterator[Fault]:
    """A module turns automatic optimization off, and nothing in the file makes a step in its place."""
    for module, step in _modules(roles):
        off = next((node for node in ast.walk(module) if isinstance(node, ast.Assign) and _turns_off(node)), None)
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
        monitor = roles.value_of(call.keywords.get("monitor"))
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
