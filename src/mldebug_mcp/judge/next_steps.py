"""Which check to make first.

The best one splits the leading hypotheses for its cost; outcomes of checks rank the causes again. The record of what
was tried is read here, too.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise, product
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import ValidationError

from mldebug_mcp.core.access import entries, is_file, is_folder, read_bytes
from mldebug_mcp.core.errors import InputError, MLDebugError
from mldebug_mcp.core.lazy import dataclass, regex
from mldebug_mcp.core.paths import expanded
from mldebug_mcp.core.text import quoted, shorten
from mldebug_mcp.judge.next_call import read_as, ready
from mldebug_mcp.judge.ranking import MAX_FREQUENCY, Candidate, CauseEvidence
from mldebug_mcp.knowledge import catalogue
from mldebug_mcp.logs import Run
from mldebug_mcp.logs.columns import Floats
from mldebug_mcp.logs.read import existing_record
from mldebug_mcp.models import Finding, Hypothesis, NextStep, State
from mldebug_mcp.models.base import NO_FAULTS
from mldebug_mcp.models.diagnosis import Tried

# How much would an observation tell? Expected bits, by the model of `ranking`.


MAX_SYMPTOMS = 8
"""Symptoms that are taken together: 256 ways in which they can turn out."""


@dataclass(frozen=True, slots=True)
class Worth:
    """What an observation is expected to tell, on average.

    `bits` is how much it lowers the entropy of the hypotheses; `moves` how far it moves the probability of each.
    """

    bits: float
    moves: Floats


@dataclass(frozen=True, slots=True)
class Likelihood:
    """What the ranking knows: frequencies of causes, how often healthy runs show a symptom, power of evidence."""

    candidates: Mapping[str, Candidate]
    background: Mapping[str, float]
    weight: float

    def worth(self, shares: Mapping[str, float], unknown: Sequence[str]) -> Worth:
        """Return how much these symptoms would tell, for hypotheses of these probabilities."""
        chances = np.array([[self._chance(cause, symptom) for symptom in unknown] for cause in shares])
        return worth(list(shares.values()), chances, self.weight)

    def _chance(self, cause: str, symptom: str) -> float:
        frequency = min(self.candidates[cause].frequency.get(symptom, 0.0), MAX_FREQUENCY)
        return 1 - (1 - self.background[symptom]) * (1 - frequency)


def entropy(shares: Sequence[float] | Floats) -> Floats:
    """Return the entropy of probabilities that sum to 1 over the last axis, in bits."""
    share = np.asarray(shares, dtype=np.float64)
    return np.asarray(-np.sum(share * np.log2(np.where(share > 0, share, 1.0)), axis=-1))


def worth(shares: Sequence[float], chances: Floats, weight: float = 1.0) -> Worth:
    """Return how much some symptoms would tell.

    Args:
        shares: Probability of each hypothesis, shape (hypotheses,); they are made to sum to 1.
        chances: Probability of each symptom under each hypothesis, shape (hypotheses, symptoms). Of more than
            `MAX_SYMPTOMS` those that differ most between hypotheses are taken.
        weight: Power to which the evidence is raised, as in `weighing.weigh`.
    """
    before = np.asarray(shares, dtype=np.float64)
    before = before / before.sum()
    if chances.shape[1] > MAX_SYMPTOMS:
        spread = np.sqrt(before) @ np.abs(chances - before @ chances)
        chances = chances[:, np.argsort(-spread)[:MAX_SYMPTOMS]]
    outcomes = np.array(list(product((True, False), repeat=chances.shape[1])))
    likely = np.where(outcomes[:, None, :], chances, 1 - chances).prod(axis=2)  # (outcomes, hypotheses)
    after = before * likely**weight
    after /= np.maximum(after.sum(axis=1, keepdims=True), 1e-300)
    how_often = likely @ before
    bits = float(entropy(before) - how_often @ entropy(after))
    return Worth(max(0.0, bits), how_often @ np.abs(after - before))


# The call of `inspect_batch` that a diagnosis suggests, with what is known of the run filled in.


PURPOSES = {
    "pretraining": "pretraining",
    "sft": "sft",
    "preference": "dpo",
    "grpo": "generation",
    "ppo": "generation",
    "supervised": "classification",
    "boosting": "classification",
}
"""The purpose of the batches of each kind of run; of another kind a batch tells it by itself."""
NAMES = tuple(f"batch{ending}" for ending in (".safetensors", ".pt", ".npz", ".json", ".jsonl", ".parquet"))
"""The names that `mldebug_mcp.capture.save_batch` usually writes."""
BATCHES = "batches"
"""The folder in which the recorder saves the batches of steps at which the loss left its course."""
_OF_STEP = regex(r"step-(\d{1,12})\b.*")
"""How the recorder names a batch that it saved."""


def filled_batch_call(call: str, path: str, kind: str) -> str:
    """Return the call with the purpose that fits the run, and with a batch saved next to its log, if any.

    A run of a kind that has no purpose of its own leaves it to the batch; without a run the call keeps its own.
    """
    purpose = PURPOSES.get(kind)
    head, mark, _ = call.partition(', purpose="')
    if mark and kind:
        call = f'{head}{mark}{purpose}")' if purpose is not None else f"{head})"
    try:
        place = expanded(path)
        folder = place if is_folder(place) else place.parent
        saved = next((folder / name for name in NAMES if is_file(folder / name)), None)
        saved = saved or _first_recorded(folder)
    except (OSError, ValueError, InputError):
        return call
    if saved is None:
        return call
    tokenizer_folder = Path(f"{saved}.tokenizer")
    tokenizer = f", tokenizer={quoted(str(tokenizer_folder))}" if is_folder(tokenizer_folder) else ""
    return call.replace('"BATCH"', quoted(str(saved)) + tokenizer)


def _first_recorded(folder: Path) -> Path | None:
    """Return the first batch that the recorder saved of some steps, None where it saved none."""
    if not is_folder(folder / BATCHES):
        return None
    named = [(int(match[1]), file) for file in entries(folder / BATCHES) if (match := _OF_STEP.fullmatch(file.name))]
    return min(named, default=(0, None))[1]


MAX_STEPS = 5
COST = {"seconds": 1.0, "minutes": 2.0, "hours": 6.0}
"""What a check costs, relative to one that takes seconds. Chosen by hand: far flatter than time itself, because
a decisive check that takes minutes beats a weak one that takes seconds."""
NO_MESSAGE = 3.0
"""Times the cost of a check that looks up a message, where the log is one of metrics alone and holds none."""
CHECK_SENSITIVITY = 0.8
"""Probability that a check confirms the cause that it looks for. Chosen: by hand."""
FALSE_CONFIRMATION = 0.15
"""How often a check confirms a cause that is there, and one that is not. Chosen by hand: checks are read by people."""

ONLY_IN = {"In RL on language models": ("grpo", "ppo"), "In RL": ("grpo", "ppo", "rl")}
"""How a check begins that is for some kinds of run only."""
TEXT_LOGS = (".log", ".txt", ".out", ".err")
"""Endings of logs that hold messages next to metrics."""
VERBS = {
    "diagnose_run": {"path", "config", "reference"},
    "probe_overfit": {"batch", "model", "entry", "python", "device", "steps"},
    "search_folklore": {"query", "domain", "topic", "limit"},
    "explain": {"id"},
    "explain_error": {"text"},
    "inspect_batch": {"path", "tokenizer", "model", "purpose", "sample", "against"},
    "inspect_script": {"path"},
    "rows_at": {"path", "step", "data", "tokenizer"},
    "check_memory": {"path", "against", "focus"},
    "estimate_memory": {"config", "batch_size", "length", "precision", "optimizer", "checkpointing", "sharding"},
}
"""The tools that a next step can call, and their arguments; of other calls in PLAYBOOK.md only the words are shown."""


def possible_call(call: str | None, path: str, kind: str = "", *, errors: bool = True) -> str | None:
    """Return a call from PLAYBOOK.md with the run's path filled in, or None if none of our tools takes it.

    A log in which no `errors` were found is not to be searched for one again.
    """
    if call is None:
        return None
    verb, _, arguments = call.partition("(")
    if verb not in VERBS or not set(re.findall(r"(\w+)=", arguments)) <= VERBS[verb]:
        return None
    if verb == "inspect_batch":
        return filled_batch_call(call, path, kind)
    if verb == "explain_error" and errors and path.lower().endswith(TEXT_LOGS):
        return call.replace('"MESSAGE"', quoted(path))  # it finds the first error of a log by itself
    return call.replace('"{path}"', quoted(path))


def applies(action: str, kind: str) -> bool:
    """Say whether a check is one for this kind of run: PLAYBOOK.md begins those that are not for all with "In RL"."""
    kinds = next((kinds for beginning, kinds in ONLY_IN.items() if action.startswith(beginning)), None)
    return kinds is None or kind in kinds


def looks_up_a_message(step: NextStep) -> bool:
    """Say whether a check asks for an error message that is not known yet."""
    return step.call is not None and step.call.startswith("explain_error(") and '"MESSAGE"' in step.call


def order_next_steps(hypotheses: Sequence[Hypothesis]) -> list[NextStep]:
    """Return the most useful checks over all hypotheses, best first.

    A check is worth the entropy of its answer, in bits, divided by its cost. It asks "is it one of the causes that this
    check is about?". Checks that make the same call are one check about several causes. Of two that are worth as much,
    a call that can be made at once comes first, then one that needs something of the user. One that looks up an error
    message comes late where the log can hold none. What to do if nothing is wrong, or nothing fits, is included only if
    that leads, and what the log has answered is not asked.
    """
    merged: dict[str, NextStep] = {}
    mass: dict[str, float] = {}
    for hypothesis, step in _steps(hypotheses):
        key = step.call or step.action
        known = merged.get(key)
        merged[key] = known.model_copy(update={"for_causes": [*known.for_causes, hypothesis.cause]}) if known else step
        mass[key] = mass.get(key, 0.0) + hypothesis.probability
    costs = {key: COST[step.cost] * (NO_MESSAGE if looks_up_a_message(step) else 1.0) for key, step in merged.items()}
    worth = {key: float(entropy([mass[key], 1 - mass[key]])) / cost for key, cost in costs.items()}
    best_first = sorted(
        merged, key=lambda key: (-worth[key], ready(merged[key].call) is None, merged[key].call is None)
    )
    return [merged[key] for key in best_first][:MAX_STEPS]


def _steps(hypotheses: Sequence[Hypothesis]) -> Iterator[tuple[Hypothesis, NextStep]]:
    """Yield every hypothesis with its checks; two checks of one hypothesis that make the same call count once."""
    for place, hypothesis in enumerate(hypotheses):
        if hypothesis.cause not in NO_FAULTS or place == 0:
            open_ones = [step for step in hypothesis.next_steps if not step.answer]
            for step in {step.call or step.action: step for step in reversed(open_ones)}.values():
                yield hypothesis, step


# Outcomes of checks: what each says about the cause that the check belongs to.


Outcome = Literal["confirms", "refutes"]

BITS: Mapping[Outcome, float] = {
    "confirms": math.log2(CHECK_SENSITIVITY / FALSE_CONFIRMATION),
    "refutes": math.log2((1 - CHECK_SENSITIVITY) / (1 - FALSE_CONFIRMATION)),
}


def evidence_from_checks(outcomes: Mapping[str, Outcome]) -> list[CauseEvidence]:
    """Return what checks say about the causes, by the id of each next step.

    Raises:
        InputError: a check or an outcome does not exist; the message says where to find those that do.
    """
    if not outcomes:
        return []
    known = {step.id: cause.id for cause in catalogue().causes.values() for step in cause.next_steps}
    evidence = []
    for check, outcome in outcomes.items():
        require_known(check, known, "check", "find the ids of checks in next_steps, such as lr_too_high.1")
        require_known(outcome, BITS, "outcome", "use confirms or refutes")
        evidence.append(CauseEvidence(known[check], BITS[outcome], f"check {check} {outcome} it", "check"))
    return evidence


def without_made(
    hypotheses: Sequence[Hypothesis], outcomes: Collection[str], *, script_read: bool = False
) -> list[Hypothesis]:
    """Return the hypotheses without the checks that were made, or that a script which was read answers."""

    def made(step: NextStep) -> bool:
        return step.id in outcomes or (script_read and (step.call or "").startswith("inspect_script("))

    return [
        hypothesis.model_copy(update={"next_steps": [step for step in hypothesis.next_steps if not made(step)]})
        if any(map(made, hypothesis.next_steps))
        else hypothesis
        for hypothesis in hypotheses
    ]


def require_known(name: str, allowed: Collection[str], what: str, hint: str) -> None:
    """Raise InputError if a name is not among those that exist."""
    if name not in allowed:
        raise InputError(f"there is no {what} {shorten(name, 60)!r}; {hint}")


def with_run_named(hypotheses: Sequence[Hypothesis], run: Run) -> list[Hypothesis]:
    """Return the hypotheses; calls that diagnose the run again name it as it was asked for, of several."""
    options = read_as(run)
    if not options:
        return list(hypotheses)

    def named(step: NextStep) -> NextStep:
        if step.call is None or not step.call.startswith("diagnose_run("):
            return step
        path = f"diagnose_run(path={quoted(run.path)}"
        more = "".join(f", {name}={quoted(value)}" for name, value in options.items() if f" {name}=" not in step.call)
        return step.model_copy(update={"call": step.call.replace(path, f"{path}{more}", 1)})

    return [
        hypothesis.model_copy(update={"next_steps": [named(step) for step in hypothesis.next_steps]})
        for hypothesis in hypotheses
    ]


# What would tell a hypothesis from the next one: its cheapest check that the other does not share.


MAX_SEPARATED_HYPOTHESES = 5
"""Hypotheses for which a check is named that tells each from the next."""
MAX_STEP_CHARACTERS = 120


def with_what_separates(hypotheses: Sequence[Hypothesis]) -> list[Hypothesis]:
    """Return the hypotheses, the leading ones with what would tell each from the one behind it."""
    leading = [
        hypothesis.model_copy(update={"separates": _separating_check(hypothesis, other)})
        for hypothesis, other in pairwise(hypotheses[: MAX_SEPARATED_HYPOTHESES + 1])
    ]
    return [*leading, *hypotheses[len(leading) :]]


def _separating_check(hypothesis: Hypothesis, other: Hypothesis) -> str:
    shared = {step.call or step.action for step in other.next_steps}
    own = [step for step in hypothesis.next_steps if (step.call or step.action) not in shared]
    asked = own or list(other.next_steps)
    return _check(min(asked, key=lambda step: (not step.answer, COST[step.cost]))) if asked else ""


def _check(step: NextStep) -> str:
    """Return the first sentence of a check, where it is short, and what the log says to it."""
    action = step.action.split(". ")[0].rstrip(".")
    words = f"{step.id}: {action}" if len(action) <= MAX_STEP_CHARACTERS else step.id
    return f"{words}; the log says: {shorten(step.answer, MAX_STEP_CHARACTERS)}" if step.answer else words


# The call of `rows_at` that a diagnosis suggests: where the files of the run tell the rows of the step in question.


OF_ROWS = ("bad_batch", "bad_data_pocket")
"""Causes that lie in the rows of a step."""
MOMENTS = ("loss_spike", "grad_norm_spike", "loss_nonfinite", "grad_norm_nonfinite")
"""Symptoms with a step at which it happened, in the order in which they are asked for it."""
_ASKS = "inspect_batch(path="


def with_rows(run: Run, findings: Sequence[Finding], hypotheses: Sequence[Hypothesis]) -> list[Hypothesis]:
    """Return the hypotheses; a check that asks for the batch of a step calls `rows_at` where that can be answered.

    Where it cannot, a batch that the recorder saved is looked at. Both take seconds: nothing has to be saved first.
    """
    asking = any(hypothesis.cause in OF_ROWS and any(map(_asks, hypothesis.next_steps)) for hypothesis in hypotheses)
    if not asking:
        return list(hypotheses)
    call = _call(run, findings)
    return [
        hypothesis.model_copy(update={"next_steps": [_answered(step, call) for step in hypothesis.next_steps]})
        if hypothesis.cause in OF_ROWS
        else hypothesis
        for hypothesis in hypotheses
    ]


def _asks(step: NextStep) -> bool:
    """Say whether a check asks for a batch that is still to be saved, or looks at one that the recorder saved."""
    call = step.call or ""
    return call.startswith(_ASKS) and ('"BATCH"' in call or _is_recorded(call))


_LOOK_AT_ROWS = (
    "Look at the rows of the first bad step, which are known, and at those of the step before: length outliers, empty "
    "rows, values out of range or not finite."
)
_LOOK_AT_BATCH = (
    "Look at the batch of the first bad step, which the recorder saved: length outliers, empty rows, values out of "
    "range or not finite."
)


def _is_recorded(call: str) -> bool:
    return BATCHES in call and "step-" in call


def _answered(step: NextStep, call: str | None) -> NextStep:
    """Return a check with the call that tells the rows of the step; without one, of a recorded batch what it costs."""
    if not _asks(step):
        return step
    if call is not None:
        return step.model_copy(update={"call": call, "cost": "seconds", "action": _LOOK_AT_ROWS})
    recorded = {"cost": "seconds", "action": _LOOK_AT_BATCH}
    return step.model_copy(update=recorded) if _is_recorded(step.call or "") else step


def _call(run: Run, findings: Sequence[Finding]) -> str | None:
    steps = {
        finding.symptom: finding.steps[0] for finding in findings if finding.state == State.PRESENT and finding.steps
    }
    moment = next((steps[symptom] for symptom in MOMENTS if symptom in steps), None)
    if moment is None or moment != int(moment) or moment < 0 or run.siblings or run.step_name != "step":
        return None
    return f"rows_at(path={quoted(run.path)}, step={int(moment)})" if _can_tell(run, int(moment)) else None


def _can_tell(run: Run, step: int) -> bool:
    """Return whether a recording has the rows of a step, or the arguments of a Trainer let them be drawn again."""
    from mldebug_mcp.rows.plan import read_recording, recordings_in, trainer_folder

    try:
        place = expanded(run.path)
        if not is_file(place) and not is_folder(place):
            return False
        files = recordings_in(place)
        if files and step in read_recording(files, range(step, step + 1)).fed:
            return True
        if trainer_folder(place) is None:
            return False
        from mldebug_mcp.rows.sampler import SamplerOptions, settle

        return bool(settle(SamplerOptions(), Path(place), run, {}, None))
    except (MLDebugError, OSError, ValueError):
        return False


# The record of what was tried on a run, read: what was ruled out, confirmed and is open.


MAX_RECORD_BYTES = 16 * 1024 * 1024
"""Bytes of a record that are read: some ten thousand entries."""
MAX_DAMAGED = 5
"""Damaged lines that are named."""


def tried_on(run: Run) -> tuple[list[Tried], list[str]]:
    """Return the record of a run that has been read, and notes on what in it cannot be read; nothing without one."""
    file = existing_record(run)
    return ([], []) if file is None else tried_in(file)


def tried_in(file: Path) -> tuple[list[Tried], list[str]]:
    """Return the entries of a record, and notes on what in it cannot be read; nothing without such a file."""
    try:
        return entries_of(file)
    except InputError as error:
        return [], [f"the record of what was tried is not read: {error}"]


def verdicts(tried: Sequence[Tried]) -> dict[str, Tried]:
    """Return the last verdict on each cause."""
    return {entry.cause: entry for entry in tried if entry.outcome != "open"}


def refuting(leader: str, tried: Sequence[Tried], counted: Collection[str] = ()) -> Tried | None:
    """Return the recorded verdict that refutes the leading cause; None without one, or where its check is `counted`."""
    last = verdicts(tried).get(leader)
    return last if last is not None and last.outcome == "refutes" and last.check not in counted else None


def still_open(tried: Sequence[Tried]) -> list[Tried]:
    """Return the checks and changes that have no verdict yet."""
    last = {(entry.cause, entry.check or entry.done): entry for entry in tried}
    return [entry for entry in last.values() if entry.outcome == "open"]


def tried_lines(tried: Sequence[Tried]) -> list[str]:
    """Return what was ruled out, what was confirmed and what is open, a line each, for people."""
    return [*(verdict.line() for verdict in verdicts(tried).values()), *(entry.line() for entry in still_open(tried))]


def entries_of(file: Path) -> tuple[list[Tried], list[str]]:
    """Return the entries of a record, and a note on lines that are damaged; raises InputError if it cannot be read."""
    try:
        if not is_file(file) or not file.stat().st_size:
            return [], []
        text = read_bytes(file, MAX_RECORD_BYTES, "move the record away to begin a new one").decode(
            "utf-8", errors="replace"
        )
    except OSError as error:
        raise InputError(f"{shorten(str(file), 200)}: cannot be read ({error.strerror or error})") from None
    tried: list[Tried] = []
    damaged: list[int] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            tried.append(Tried.model_validate_json(line))
        except (ValidationError, ValueError, RecursionError):
            damaged.append(number)
    if not damaged:
        return tried, []
    named = ", ".join(map(str, damaged[:MAX_DAMAGED])) + (", …" if len(damaged) > MAX_DAMAGED else "")
    lines = "1 damaged line is" if len(damaged) == 1 else f"{len(damaged)} damaged lines are"
    return tried, [f"{lines} left out of {file.name}: line {named}"]
