"""What is answered about a script: a fault with its cause and fix, and the lines where a reviewer looks."""

from __future__ import annotations

import ast
import csv
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from mldebug_mcp.models.script import Certainty
from mldebug_mcp.script.calls import last_name, walk
from mldebug_mcp.script.roles import Roles


@dataclass(frozen=True, slots=True)
class Fault:
    """Something in a script that is wrong, or may be.

    Args:
        rule: Its id.
        line: The line, from 1.
        certainty: "certain", "likely", or "depends" on what the script does not show.
        cause: The cause of PLAYBOOK.md that it is.
        says: What stands there, and why that is wrong.
        shows: What it would show in a log.
        fix: What to write instead.
        lines: Other lines that take part in it, such as that of the setting which decides.
    """

    rule: str
    line: int
    certainty: Certainty
    cause: str
    says: str
    shows: str
    fix: str
    lines: tuple[int, ...] = ()


MAX_JUDGED = 20
"""Calls or assignments that a rule judges where each takes long. Chosen: a script has a few."""
FAULTS_FILE = Path(__file__).parent / "faults.csv"


@lru_cache(maxsize=1)
def kinds() -> dict[str, tuple[str, str, str]]:
    """Return, by the id of a rule, the cause of what it finds, what that would show in a log, and the fix."""
    with FAULTS_FILE.open(encoding="utf-8", newline="") as file:
        return {row["rule"]: (row["cause"], row["shows"], row["fix"]) for row in csv.DictReader(file)}


def fault(
    rule: str, line: int, certainty: Certainty, says: str, *, cause: str = "", fix: str = "", lines: Iterable[int] = ()
) -> Fault:
    """Return a fault of a rule; what it shows comes from `faults.csv`, and cause and fix where none is given."""
    usual_cause, shows, usual_fix = kinds()[rule]
    return Fault(rule, line, certainty, cause or usual_cause, says, shows, fix or usual_fix, tuple(lines))


Rule = Callable[[Roles], Iterator[Fault]]
"""What looks for one kind of fault in a script."""


# Where a script answers the questions that a reviewer asks of every training script.
#
# A rule follows what it can prove. A reviewer asks the same questions of each script and looks at a few lines for each.
# These are the questions, and the lines.


LINES_OF_A_QUESTION = 12
"""Lines that are named for a question, the first ones. Chosen: so many are looked at in a minute."""


@dataclass(frozen=True, slots=True)
class Place:
    """A question, and the lines of a script that answer it.

    Args:
        question: What a reviewer asks.
        lines: The lines, from 1.
    """

    question: str
    lines: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Question:
    """A question, and what the lines that answer it call, assign or read.

    Args:
        text: The question.
        calls: A pattern of the last part of the names of calls.
        names: A pattern of names that are assigned or read, in full.
    """

    text: str
    calls: str = ""
    names: str = ""


QUESTIONS = (
    _Question(
        "Does each optimizer have all parameters that are to learn, made before it, and no others?",
        calls=r"parameters|named_parameters|requires_grad_|add_param_group|\w*(?:Adam\w*|SGD|RMSprop|Adafactor|Lion|Muon|LBFGS)",
    ),
    _Question(
        "Is the order right: gradients cleared, backward, unscaled, clipped, stepped, schedule last; once per update?",
        calls=r"zero_grad|backward|manual_backward|unscale_|clip_grad_norm_|clip_grad_value_|step|update",
    ),
    _Question(
        "Is the loss divided by the steps that it is accumulated over, and is the last partial window used?",
        names=r"\w*accum\w*",
    ),
    _Question(
        "Do the period and warm-up of a schedule count what its step() counts: batches, updates or epochs?",
        calls=r"\w*(?:LR|_schedule|schedule_with_warmup|scheduler)",
        names=r"\w*(?:warmup|total_steps|max_steps|num_training_steps|t_max|schedule)\w*",
    ),
    _Question(
        "Does a loss get logits or probabilities as it expects, shapes that fit, the right axis, reduction and sign?",
        calls=r"\w*(?:loss|criterion|cross_entropy|softmax|sigmoid|logsigmoid|kl_div|BCE\w*)\w*",
        names=r"\w*(?:loss|objective)",
    ),
    _Question(
        "Does the gradient reach what is to learn, and stop where it has to?",
        calls=r"detach_?|item|no_grad|inference_mode|stop_gradient|numpy|tolist",
    ),
    _Question(
        "Are train() and eval() set around each evaluation and set back; is nothing learnt or augmented there?",
        calls=r"eval|train|no_grad|inference_mode|\w*(?:evaluate|validate)\w*",
    ),
    _Question(
        "Is training data shuffled, evaluation data apart from it, and are statistics of training data used for both?",
        calls=r"\w*(?:Loader|Sampler|Subset|random_split|train_test_split|shuffle|permutation|randperm|set_epoch|fit|"
        r"fit_transform|Normalize|split)",
        names=r"\w*(?:mean|std|stats|scaler|split)\w*",
    ),
    _Question(
        "Do labels, masks and shifts mean what their user takes them for: True keeps or leaves out, shifted once, "
        "padding ignored?",
        names=r"\w*(?:mask|pad|ignore|shift|label)\w*",
    ),
    _Question(
        "Is each second network updated, loaded, evaluated and left without gradient as meant?",
        calls=r"deepcopy|load_state_dict|lerp_?|copy_|mul_",
        names=r"\w*(?:ema|target_net|target_q|teacher|polyak|momentum_encoder|shadow|averaged)\w*",
    ),
    _Question(
        "Do rewards, advantages, returns, ratios and penalties have the right sign, order, baseline and clipping?",
        names=r"\w*(?:reward|advantage|adv|returns?|ratio|gamma|gae|entropy_coef|kl_coef|beta|done|terminated)s?",
    ),
    _Question(
        "Is each metric computed over all rows, over the right axis, and is the best kept by its right side?",
        calls=r"argmax|topk|mean|accuracy\w*|\w*(?:metric|score)\w*",
        names=r"best\w*|\w*(?:correct|accuracy|metric)\w*",
    ),
    _Question(
        "Does a run that goes on load all that it saved: optimizer, schedule, scaler, epoch, random state?",
        calls=r"load|save|load_state_dict|state_dict|save_pretrained|from_pretrained",
    ),
    _Question(
        "Do the settings of a trainer or configuration agree with each other, and is each of them used?",
        calls=r"\w*(?:Trainer|TrainingArguments|Config|add_argument)",
    ),
)
"""What a reviewer asks. Each asks of the kinds of faults that `faults.csv` lists."""


def places_of(roles: Roles) -> Iterator[Place]:
    """Yield the questions to which a script has lines, with these."""
    called = [(call.line, call.method) for call in roles.script.calls]
    called += [
        (node.lineno, last_name(node))
        for function in walk(roles.script.tree, ast.FunctionDef, ast.AsyncFunctionDef)
        for node in function.decorator_list
    ]
    named = [(made.line, made.last) for made in roles.script.assignments]
    for question in QUESTIONS:
        lines = {
            line
            for pattern, found in ((question.calls, called), (question.names, named))
            if pattern
            for line, name in found
            if re.fullmatch(pattern, name, re.IGNORECASE)
        }
        if lines:
            yield Place(question.text, tuple(sorted(lines)[:LINES_OF_A_QUESTION]))
