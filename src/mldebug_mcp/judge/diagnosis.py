"""The verb `diagnose_run`: read the log, ask all questions, rank the causes, order the next steps."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mldebug_mcp.checks import examine, symptoms
from mldebug_mcp.checks.learning_rate import range_test
from mldebug_mcp.checks.policies import best_of_rise
from mldebug_mcp.checks.progress import knows_nothing
from mldebug_mcp.checks.run.adversarial import IN_PLAY, losses_of_players
from mldebug_mcp.checks.run.end_of_run import error_that_ended
from mldebug_mcp.checks.run.gradients import labels_give_loss, rewards_differ
from mldebug_mcp.checks.run.resources import COMPUTES_SLOWLY, LOST_ALONE
from mldebug_mcp.checks.run.resume import joins_of
from mldebug_mcp.core.access import is_file
from mldebug_mcp.core.arrays import distinct, slices_of
from mldebug_mcp.core.errors import InputError
from mldebug_mcp.core.lazy import dataclass, replace
from mldebug_mcp.core.paths import expanded
from mldebug_mcp.core.text import capitalised, figure, percent, shorten
from mldebug_mcp.judge.causes import (
    EXCLUDING_BITS,
    UNLIKELY_BITS,
    evidence_from_needs,
    kl_runs_on,
    learner_of,
    of_learner,
    with_fitting_fixes,
)
from mldebug_mcp.judge.columns.facts import ONE_RANK, column_facts, evidence_from_columns, with_reasons
from mldebug_mcp.judge.evidence import (
    evidence_from_errors,
    evidence_from_jumps,
    evidence_from_message,
    evidence_from_settings,
    evidence_from_siblings,
    with_answers,
)
from mldebug_mcp.judge.hypotheses import (
    as_clause,
    backgrounds,
    candidates,
    describe_ties,
    fitted,
    judge_causes,
)
from mldebug_mcp.judge.likeness import ABOUT, evidence_from_classifier, evidence_from_traits, shipped, shipped_traits
from mldebug_mcp.judge.next_call import (
    after_a_crash,
    after_one_of_several,
    after_ranking,
    as_command,
    diagnose_command,
    is_sendable,
)
from mldebug_mcp.judge.next_steps import (
    Likelihood,
    Outcome,
    evidence_from_checks,
    order_next_steps,
    refuting,
    require_known,
    still_open,
    tried_on,
    verdicts,
    with_rows,
    with_run_named,
    with_what_separates,
    without_made,
)
from mldebug_mcp.judge.ranking import CauseEvidence
from mldebug_mcp.judge.run_verdict import (
    MAX_FIX_CHARACTERS,
    in_its_place,
    name_of,
    names_nothing,
    not_judged,
    steps_asked,
    verdict_of,
    whole_sentences,
    without_result,
)
from mldebug_mcp.judge.sheet import quantity_facts, setting_facts, sheet_of
from mldebug_mcp.judge.what_to_log import hardly_judged, what_to_log
from mldebug_mcp.knowledge import catalogue
from mldebug_mcp.logs import Run, read_run
from mldebug_mcp.logs.checkpoints import checkpoints_of
from mldebug_mcp.logs.columns import Floats, ascends
from mldebug_mcp.logs.run import Message
from mldebug_mcp.models import (
    Comparison,
    Diagnosis,
    Finding,
    Hypothesis,
    MetricToLog,
    NextStep,
    RunSummary,
    RunVerdict,
    Sheet,
    State,
)
from mldebug_mcp.models.base import NO_FAULTS, OTHER, SOUND, Glance
from mldebug_mcp.models.diagnosis import CheckpointChoice, DerivedFact, QuantityFact, SettingFact

if TYPE_CHECKING:
    from mldebug_mcp.judge.reader import Reader
    from mldebug_mcp.models import Update
    from mldebug_mcp.models.diagnosis import Tried
    from mldebug_mcp.models.script import ScriptReport

# What was read of a run, in numbers: the head of a diagnosis.


MAIN_METRICS = ("loss", "eval_loss", "reward", "grad_norm")
"""What a reader asks for first."""


def run_summary(run: Run) -> RunSummary:
    """Return what was read: formats, kind, steps, metrics, and the last values of the main ones."""
    return RunSummary.model_construct(
        runs_in_folder=run.runs_found,
        path=run.path,
        name=run.name,
        config_file=run.config_file,
        formats=list(run.formats),
        kind=run.kind,
        records=run.records,
        steps=_distinct_steps(series.step for series in run.series.values()),
        first_step=run.first_step,
        last_step=run.last_step,
        step_name=run.step_name,
        segments=max(1, len(run.segments)),
        metrics=sorted(run.series),
        last={name: float(run[name].value[-1]) for name in _main_metrics(run)},
    )


def _main_metrics(run: Run) -> list[str]:
    """Return what a reader asks for first; where none of that is logged, the first losses, else the first metrics."""
    logged = [name for name, series in run.series.items() if len(series)]
    main = [name for name in MAIN_METRICS if name in logged]
    return main or sorted(logged, key=lambda name: ("loss" not in name, name))[:3]


def _distinct_steps(steps: Iterable[Floats]) -> int:
    # Metrics that stand in every record share one array of steps, and evaluations stand at some of these.
    different = sorted({(step.ctypes.data, step.size): step for step in steps}.values(), key=len)
    if not different:
        return 0
    most = different.pop()
    if not ascends(most):
        return len(distinct(np.concatenate([most, *different])))
    rest = [_not_among(most, step[part]) for step in different for part in slices_of(len(step))]
    return len(most) + len(distinct(np.concatenate([np.empty(0), *rest])))


def _not_among(ascending: Floats, steps: Floats) -> Floats:
    at = np.minimum(np.searchsorted(ascending, steps), len(ascending) - 1)
    others: Floats = steps[ascending[at] != steps]
    return others


SETTING_BITS = 2.0
"""Bits that a setting different from the good run's adds to the fault it may be: four to one. Chosen by hand."""
ENDS_WORSE_BITS = 5.0
"""Bits against `healthy` if a result ends clearly worse than in the good run; and then for the fault that a setting may
be, if at most `FEW_SETTINGS` differ: thirty-two to one. Chosen by hand: the rest of the good run is not a fault."""
FEW_SETTINGS = 2
LITTLE_BITS = -1.5
"""Bits against `healthy` where hardly any symptom could be judged. Among public logs 4 of 37 healthy runs and 45 of 89
of faulty ones hold three records or fewer, which would be two bits. Chosen by hand."""
NO_RESULT_BITS = 10.0
"""Bits against `healthy` where no loss, score or reward is understood: no result was seen. Chosen by hand."""
OF_REWARDS = ("reward_broken", "no_reward_variance")
"""Causes that leave no differences between rewards."""
OF_LOST_RANK = {"bad_data_pocket": 13.0, OTHER: 6.5, "hardware_fault": -3.0}
"""Bits where one rank's loss alone is not finite. Chosen by hand: no public log shows how often it is the cause."""
KL_FIRST_BITS = 3.0
"""Bits where KL rises before the ratio of the policy leaves its range: eight to one. Chosen by hand."""
KL_RUNS_ON_BITS = 7.0
"""Bits where KL at least doubles over the last quarter without reward. Chosen by hand: a hundred to one. None
of 5 labelled healthy runs with a KL shows it."""
MIN_SHARE_IN_PLAY = 0.1
"""Share of a run in which two networks are in play before one is beaten. Chosen: the first steps say nothing."""
RANGE_TEST_BITS = 20.0
"""Bits for `healthy` where the run is a range test: its loss breaks by design. Chosen by hand."""
OF_RESUMES = ("resume_state_lost", "resume_data_replayed")
FIRST_STEPS = 1
"""Steps at which the log of a whole run begins: counted from 0 or 1."""
NO_RESUME_BITS = 3.0
"""Bits against causes that need a resume where a log shows none: one may be silent. Chosen by hand."""
HARDLY_JUDGED = "hardly any symptom could be judged from this log: the probabilities are nearly the priors"
ONLY_ERRORS = (
    "the log holds no records, only lines that read like errors. Ask mldebug-mcp error (explain_error) about them."
)


def diagnose_run(
    path: str | Path,
    config: str | Path | None = None,
    reference: str | Path | None = None,
    findings: Sequence[Finding] = (),
    run: str = "",
    *,
    outcomes: Mapping[str, Outcome] | None = None,
    names: Mapping[str, str] | None = None,
    reader: Reader | None = None,
    script: str | Path | None = None,
) -> Diagnosis:
    """Say what is seen in a training log, which causes fit it, and what to check next.

    Args:
        path: A log file or a run folder.
        config: The training configuration (JSON or YAML), if it is not next to the log.
        reference: The log or folder of a run that went well, to compare with.
        findings: What other verbs found on the same run; they replace findings on the same symptom.
        run: Which run to read, if the path holds several; by default the one with most records. "attempt 1" is the
            first start of a program whose log holds several.
        outcomes: How checks of an earlier diagnosis turned out: by the id of a next step (such as "lr_too_high.1")
            whether it "confirms" or "refutes".
        names: What names of the log mean that do not say it: column → metric, such as {"L": "loss"}.
        script: The training script; what it does wrong or right counts. It is read and never run.
        reader: A function from a prompt to a reply that judges the run as well; see `reader`.

    Returns:
        Every symptom with its state, every cause with its probability, best first, and the next steps in order.

    Raises:
        InputError: a path cannot be used, or a check does not exist; the message says why and what to do.
    """
    good = read_run(reference) if reference is not None else None
    own = read_run(path, config, run, names)
    answer = diagnose(own, good, findings, outcomes, inspected(script))
    if reader is None:
        return answer
    from mldebug_mcp.judge.reader import with_reader

    return with_reader(answer, reader)


def inspected(script: str | Path | None) -> ScriptReport | None:
    """Return what a training script says, None where none is named; what reads scripts is loaded for one alone."""
    if script is None:
        return None
    from mldebug_mcp.judge.script import inspect_script

    return inspect_script(script)


def diagnose(
    run: Run,
    reference: Run | None = None,
    findings: Sequence[Finding] = (),
    outcomes: Mapping[str, Outcome] | None = None,
    script: ScriptReport | None = None,
) -> Diagnosis:
    """Diagnose a run that has been read; see `diagnose_run`. `script` is what its training script says."""
    checked = outcomes or {}
    of_script, script_facts, script_findings = _of_script(script)
    known = gather(run, reference, [*findings, *script_findings])
    judged = known.findings
    of_jumps = evidence_from_jumps(known.comparison, checked)
    evidence = [*known.evidence, *of_jumps, *evidence_from_checks(checked), *of_script]
    tried, damaged = tried_on(run)
    made = {*checked, *(entry.check for entry in verdicts(tried).values())}
    hypotheses = _hypotheses(run, judged, evidence, made, known.comparison, script_read=script is not None)
    refuted = refuting(hypotheses[0].cause, tried, checked)
    next_steps = order_next_steps(hypotheses)
    causes = {candidate.id: candidate for candidate in candidates(run.kind)}
    likelihood = Likelihood(causes, backgrounds(), fitted().powers(evidence).weight)
    missing = what_to_log(run, judged, hypotheses, likelihood)
    summary, sheet = run_summary(run), known.sheet(run, missing)
    no_result = without_result(run)
    little = hardly_judged(judged, run)
    why = no_result if run.series else [ONLY_ERRORS]
    verdict = (
        not_judged(summary, "".join(why), missing, losses_of_players(run))
        if little or (why and hypotheses[0].cause in NO_FAULTS)
        else verdict_of(summary, sheet, judged, hypotheses, steps=next_steps, missing=missing, learner=learner_of(run))
    )
    unjudged = verdict.kind == "not judged"
    if hypotheses[0].cause == SOUND and (of_range := range_test(run)):
        verdict = not_judged(summary, of_range, missing)
    died = died_of(run) if hypotheses[0].cause in NO_FAULTS else None
    if died is not None:
        verdict = verdict_of_error(died, hypotheses)
    first = [*_changed_by_siblings(run, judged, evidence), *_fault_of_reference(reference)]
    if first:
        verdict = verdict.model_copy(update={"facts": [*first, *verdict.facts]})
    place = "folder" if run.runs_in_folder > 1 else "file"
    return Diagnosis.model_construct(
        status="no_result_logged" if no_result else "too_little_seen" if unjudged else "judged",
        verdict=in_its_place(
            verdict, run.runs_found if run.is_one_of_several else 1, refuted, learner_of(run), place=place
        ),
        run=summary,
        sheet=sheet,
        findings=judged,
        hypotheses=hypotheses,
        next_steps=next_steps,
        next_step=(after_one_of_several(run.path) if run.is_one_of_several else None)
        or (
            after_a_crash(died.look_in)
            if died is not None
            else after_ranking(steps_asked(hypotheses, next_steps), hypotheses)
        ),
        ties=describe_ties(run, judged, hypotheses, likelihood),
        what_to_log=missing,
        comparison=known.comparison,
        checkpoint=_checkpoint_to_keep(run),
        script=script_facts,
        tried=[*verdicts(tried).values(), *still_open(tried)],
        notes=[
            *_note_of_refuted(refuted),
            *damaged,
            *no_result,
            *([HARDLY_JUDGED] if little else []),
            *run.notes,
            *known.problems,
            *([f"script: {note}" for note in script.notes] if script else []),
        ],
    )


def _checkpoint_to_keep(run: Run) -> CheckpointChoice | None:
    if not run.folder or not checkpoints_of(run):
        return None
    from mldebug_mcp.judge.checkpoints import checkpoint_choice

    return checkpoint_choice(run)


def _changed_by_siblings(run: Run, findings: Sequence[Finding], evidence: Sequence[CauseEvidence]) -> list[str]:
    """Return what the siblings of the run changed and why, where they changed anything."""
    of_siblings = evidence_from_siblings(run)
    if not of_siblings:
        return []
    alone = [cause_evidence for cause_evidence in evidence if cause_evidence not in of_siblings]
    leader = judge_causes(findings, run.kind, alone, run.path)[0]
    return [f"{of_siblings[-1].because}; by its own log alone {leader.cause} leads with {percent(leader.probability)}"]


def _fault_of_reference(reference: Run | None) -> list[str]:
    """Return that a fault leads in the reference run, where one does: a comparison takes it for a good run."""
    if reference is None:
        return []
    known = gather(reference)
    leader = judge_causes(known.findings, reference.kind, known.evidence, reference.path)[0]
    if leader.cause in NO_FAULTS or hardly_judged(known.findings, reference):
        return []
    of_fault = f"{name_of(leader.cause, learner_of(reference))} leads in it with {percent(leader.probability)}"
    return [f"the reference run may not be a good one: {of_fault}"]


def _of_script(script: ScriptReport | None) -> tuple[list[CauseEvidence], list[str], list[Finding]]:
    """Return what a script says of causes, the lines of an answer that say so, and what it says of symptoms."""
    if script is None:
        return [], [], []
    from mldebug_mcp.judge.script import evidence_from_script, findings_from_script, script_lines

    return evidence_from_script(script), script_lines(script), findings_from_script(script)


def _hypotheses(
    run: Run,
    findings: Sequence[Finding],
    evidence: Sequence[CauseEvidence],
    made: Collection[str],
    comparison: Comparison | None,
    *,
    script_read: bool,
) -> list[Hypothesis]:
    """Return the causes, best first, with fixes and checks that fit this run, without the checks already `made`."""
    hypotheses = with_run_named(judge_causes(findings, run.kind, evidence, run.path), run)
    hypotheses = with_fitting_fixes(run, with_answers(run, hypotheses, findings, comparison), findings)
    hypotheses = with_what_separates(without_made(hypotheses, made, script_read=script_read))
    return with_rows(run, findings, hypotheses)


def _note_of_refuted(refuted: Tried | None) -> list[str]:
    """Return that the leading cause was refuted by an earlier check, which does not count unless it is given."""
    if refuted is None:
        return []
    counted = f"; count it with --outcome {refuted.check}=refutes" if refuted.check else ""
    verdict = f"was {refuted.verdict()} on {refuted.at[:10]} by the record next to the run"
    return [f"{refuted.cause} leads by this log, but {verdict}{counted}"]


@dataclass(frozen=True, slots=True)
class RunKnowledge:
    """What is known of a run before its causes are ranked; `problems` are notes on symptoms that broke."""

    kind: str
    findings: list[Finding]
    evidence: list[CauseEvidence]
    facts: Sequence[DerivedFact] = ()
    settings: list[SettingFact] = field(default_factory=list)
    quantities: list[QuantityFact] = field(default_factory=list)
    comparison: Comparison | None = None
    problems: Sequence[str] = ()

    def sheet(self, run: Run, missing: Sequence[MetricToLog]) -> Sheet:
        """Return the sheet of the run, with what is missing in its log."""
        return sheet_of(run, self.findings, missing, self.facts, settings=self.settings, quantities=self.quantities)


def gather(run: Run, reference: Run | None = None, findings: Sequence[Finding] = ()) -> RunKnowledge:
    """Examine a run; the findings given replace its own on the same symptom where their states differ."""
    examined, problems = examine(run)
    own = {finding.symptom: finding for finding in examined}
    other = [
        finding for finding in findings if (known := own.get(finding.symptom)) is None or known.state != finding.state
    ]
    examined = list((own | {finding.symptom: finding for finding in other}).values())
    comparison = None
    if reference is not None:
        from mldebug_mcp.judge.comparison import compare

        comparison = compare(run, reference)
    facts = column_facts(run)
    examined = with_reasons(examined, facts)
    with np.errstate(all="ignore"):  # of numbers at the ends of what a float holds
        settings, quantities = setting_facts(run), quantity_facts(run, examined)
        of_traits = evidence_from_traits(run, settings, quantities)
    evidence = [
        *_evidence_from_comparison(comparison),
        *evidence_from_run(run, examined, facts),
        *evidence_from_classifier(run, fitted().with_findings.questions.get(ABOUT, 0.0)),
        *of_traits,
    ]
    return RunKnowledge(run.kind, examined, evidence, facts, settings, quantities, comparison, problems)


def evidence_from_run(run: Run, findings: Sequence[Finding], facts: Sequence[DerivedFact]) -> list[CauseEvidence]:
    """Return what a run says about causes besides its findings and its numbers; `facts` are those on its columns."""
    return [
        *evidence_from_errors(run),
        *evidence_from_needs(run),
        *evidence_from_settings(run),
        *evidence_from_columns(facts, findings),
        *_evidence_from_nothing_learnt(findings),
        *_evidence_from_rewards_that_differ(findings, run),
        *_evidence_from_a_loss_of_labels(findings, run),
        *_evidence_from_one_lost_rank(findings),
        *_evidence_from_a_class_never_found(findings),
        *_evidence_from_kl_first(findings),
        *_evidence_from_kl_that_runs_on(findings, run),
        *_evidence_from_growing_chance(findings, run),
        *_evidence_from_routing(findings),
        *_evidence_from_players(findings, run),
        *([CauseEvidence(SOUND, RANGE_TEST_BITS, of_range, "log")] if (of_range := range_test(run)) else []),
        *_evidence_from_little(findings, run),
        *_evidence_from_no_result(run),
        *_evidence_from_no_resume(run),
        *evidence_from_siblings(run),
    ]


def _present_finding(findings: Sequence[Finding], symptom: str) -> Finding | None:
    """Return the finding of a symptom that is present, None where it is absent or unknown."""
    present = (finding for finding in findings if finding.state is State.PRESENT)
    return next((finding for finding in present if finding.symptom == symptom), None)


def _evidence_from_nothing_learnt(findings: Sequence[Finding]) -> list[CauseEvidence]:
    """Return what it says that evaluation stays at chance: what was never known is not lost to overfitting."""
    if _present_finding(findings, "eval_learns_nothing") is None:
        return []
    return [CauseEvidence("overfitting", -UNLIKELY_BITS, "evaluation never knew anything that it could lose", "log")]


def _evidence_from_rewards_that_differ(findings: Sequence[Finding], run: Run) -> list[CauseEvidence]:
    """Return what takes a gradient of 0 off the rewards: rewards that differ within their groups give one."""
    if _present_finding(findings, "grad_norm_zero") is None or not rewards_differ(run):
        return []
    fact = "the rewards of its groups differ, so that there is something to learn"
    return [CauseEvidence(cause, -UNLIKELY_BITS, fact, "log") for cause in OF_REWARDS]


def _evidence_from_a_loss_of_labels(findings: Sequence[Finding], run: Run) -> list[CauseEvidence]:
    """Return what takes a gradient of 0 off labels that are all masked: a loss above 0 was computed on some."""
    if _present_finding(findings, "grad_norm_zero") is None or not labels_give_loss(run):
        return []
    fact = "the loss is above 0 where the gradient norm is 0, so that some labels count"
    return [CauseEvidence("all_labels_masked", -UNLIKELY_BITS, fact, "log")]


_OF_ALL_RANKS = ("lr_too_high", "exploding_gradients", "adam_instability", "insufficient_warmup", "bad_init")
"""Causes that drive all ranks alike, as these have the same weights and settings."""


def _evidence_from_one_lost_rank(findings: Sequence[Finding]) -> list[CauseEvidence]:
    """Return what it says that one rank's loss is not finite and no other rank follows.

    Averaged gradients bring it to all ranks within a step. So bad rows of that rank whose update is skipped, or
    gradients that are not synchronised, explain it as well as a device does. Where its loss is far above theirs, the
    mean over the ranks follows, and what drives all ranks alike explains neither. One that computes more slowly does
    not wait for its data.
    """
    lost = _present_finding(findings, "rank_differs")
    if lost is not None and "others" in lost.values and _present_finding(findings, "rank_computes_otherwise"):
        others = "the other ranks, which train with the same weights and settings, keep their level"
        about = ONE_RANK if lost.values["of_loss"] else ""
        return [CauseEvidence(cause, -UNLIKELY_BITS, others, "log", about) for cause in _OF_ALL_RANKS]
    if lost is not None and lost.values.get(COMPUTES_SLOWLY):
        fact = "what that rank takes longer for is computing, which waits for no data"
        return [CauseEvidence("dataloader_bottleneck", -UNLIKELY_BITS, fact, "log")]
    if lost is None or not lost.values.get(LOST_ALONE):
        return []
    others = "the other ranks stay finite, though averaged gradients would bring it to them"
    return [
        CauseEvidence(
            "bad_data_pocket", OF_LOST_RANK["bad_data_pocket"], f"{others}: bad data of that rank, skipped", "log"
        ),
        CauseEvidence(OTHER, OF_LOST_RANK[OTHER], f"{others}: the gradients may not be synchronised", "log"),
        CauseEvidence("hardware_fault", OF_LOST_RANK["hardware_fault"], f"{others}: data or code do it too", "log"),
        CauseEvidence("dataloader_bottleneck", -UNLIKELY_BITS, "a rank that waits has a finite loss", "log"),
    ]


def _evidence_from_a_class_never_found(findings: Sequence[Finding]) -> list[CauseEvidence]:
    """Return what it says that a class is found at no evaluation: one that is merely harder is found now and then.

    Focal loss was made for such rare classes (focal_loss_2017).
    """
    missed = _present_finding(findings, "minority_missed")
    if missed is None or not missed.values.get("never"):
        return []
    fact = "a class is found at no evaluation, while another one is found well"
    return [CauseEvidence("class_imbalance", UNLIKELY_BITS, fact, "log")]


def _evidence_from_kl_first(findings: Sequence[Finding]) -> list[CauseEvidence]:
    """Return what it says that KL rises before the ratios leave their range: old samples would part those first."""
    far, off = _present_finding(findings, "kl_high"), _present_finding(findings, "importance_ratio_off")
    if far is None or off is None or not far.steps or not off.steps or far.steps[0] >= off.steps[0]:
        return []
    fact = "KL rises before the ratio leaves its range: the policy itself goes too far"
    return [
        CauseEvidence("off_policy_staleness", -KL_FIRST_BITS, fact, "log"),
        CauseEvidence("kl_blowup", KL_FIRST_BITS, fact, "log"),
    ]


def _evidence_from_kl_that_runs_on(findings: Sequence[Finding], run: Run) -> list[CauseEvidence]:
    """Return what it says that KL multiplies up to the end without reward: rewards pay for one that is merely high."""
    fact = kl_runs_on(run) if _present_finding(findings, "kl_high") is not None else None
    return [CauseEvidence("kl_blowup", KL_RUNS_ON_BITS, fact, "log")] if fact else []


def _evidence_from_growing_chance(findings: Sequence[Finding], run: Run) -> list[CauseEvidence]:
    """Return what it says that actions get more random after a reward was found.

    It is then neither for want of exploration nor of differences between rewards. A policy that never explores ends at
    constant or at zero entropy (rahtz_entropy_failure_modes).
    """
    risen = best_of_rise(run) if _present_finding(findings, "entropy_grows") is not None else None
    if risen is None:
        return []
    fact = f"the reward had risen from {figure(risen[0])} to {figure(risen[1])}, and actions get more random"
    return [CauseEvidence(cause, -EXCLUDING_BITS, fact, "log") for cause in ("exploration_failure", *OF_REWARDS)]


def _evidence_from_routing(findings: Sequence[Finding]) -> list[CauseEvidence]:
    """Return what it says that a router sends most tokens to a few experts: no cause of the catalogue does it."""
    found = _present_finding(findings, "routing_collapses")
    if found is None:
        return []
    return [
        CauseEvidence(OTHER, EXCLUDING_BITS, f"{found.summary}: the router collapses", "log"),
        CauseEvidence(SOUND, -UNLIKELY_BITS, found.summary, "log"),
    ]


def _evidence_from_players(findings: Sequence[Finding], run: Run) -> list[CauseEvidence]:
    """Return what it says that both networks of a GAN were in play before one of them lost: their weights move."""
    lost = _present_finding(findings, "adversarial_loss_one_sided")
    if lost is None:
        return []
    in_play = lost.values.get(IN_PLAY) or 0.0
    if in_play < MIN_SHARE_IN_PLAY * (run.last_step - run.first_step):
        return []
    fact = f"both networks are in play up to {run.place(lost.steps[0] or 0.0)}"
    return [CauseEvidence(cause, -UNLIKELY_BITS, fact, "log") for cause in ("params_not_training", "wrong_loss")]


def _evidence_from_little(findings: Sequence[Finding], run: Run) -> list[CauseEvidence]:
    """Return what it says that a log tells next to nothing: such excerpts are shown where something is wrong."""
    if not hardly_judged(findings, run):
        return []
    return [CauseEvidence(SOUND, LITTLE_BITS, "the log tells next to nothing", "log")]


def _evidence_from_no_result(run: Run) -> list[CauseEvidence]:
    """Return what it says that no loss, score or reward is among what was logged.

    It makes no cause more likely than it was: what would have been called healthy is unknown, no more.
    """
    if not names_nothing(run):
        return []
    reason = "no loss, score or reward was found"
    healthy, unknown = (catalogue().prior(name, run.kind) for name in NO_FAULTS)
    return [
        CauseEvidence(SOUND, -NO_RESULT_BITS, reason, "log"),
        CauseEvidence(OTHER, math.log2(healthy / unknown), reason, "log"),
    ]


def _evidence_from_no_resume(run: Run) -> list[CauseEvidence]:
    """Return what it says that a run begins at its first steps, or knows nothing then, and shows no resume."""
    first = run["loss"].finite.value[:1].tolist() if "loss" in run else []
    begins = run.step_name == "step" and run.first_step <= FIRST_STEPS
    if joins_of(run) or not first or not (begins or knows_nothing(run, first[0])):
        return []
    reason = "the log begins with the run and shows no resume"
    return [CauseEvidence(cause, -NO_RESUME_BITS, reason, "log") for cause in OF_RESUMES]


def prepare() -> None:
    """Load what every diagnosis needs; done in a thread while a large log is read."""
    symptoms()
    catalogue()
    fitted()
    shipped()
    shipped_traits()


def _evidence_from_comparison(comparison: Comparison | None) -> list[CauseEvidence]:
    if comparison is None or not (comparison.partings or comparison.alike):
        return []
    results = [parting for parting in comparison.partings if parting.metric != "learning_rate"]
    if comparison.same_losses or (not results and any(not jump.both for jump in comparison.jumps)):
        return []
    if not results:
        return [CauseEvidence(SOUND, SETTING_BITS, "no metric departs from the reference run", "reference")]
    from mldebug_mcp.judge.comparison import suspects

    worse = next((result for result in results if result.worse), None)
    bits = ENDS_WORSE_BITS if worse is not None and len(comparison.settings) <= FEW_SETTINGS else SETTING_BITS
    evidence = [
        CauseEvidence(cause, bits, difference, "reference") for cause, difference in suspects(comparison).items()
    ]
    if worse is None:
        first = results[0]
        fact, against = f"{first.metric} departs from the reference run at {figure(first.step)}", SETTING_BITS
    else:
        ends = f"{worse.metric} ends at {figure(worse.run_at_end)}"
        fact, against = f"{ends}, in the reference run {figure(worse.reference_at_end)}", ENDS_WORSE_BITS
    return [*evidence, CauseEvidence(SOUND, -against, fact, "reference")]


# The error that ended a run, its meaning and its fix: what an answer leads with where no fault explains it.


MAX_MESSAGE_CHARACTERS = 160
MAX_MEANING_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class LastError:
    """The error that ended a run.

    Args:
        words: The message, without the prefix of its rank.
        rank: The rank that failed with it; empty where that is not known.
        place: The line that it stands in.
        id: The entry of the message; empty where it is not a known one.
        meaning: What it means.
        fix: What usually helps.
        look_in: The log that holds it, else its message.
    """

    words: str
    rank: str
    place: str
    id: str
    meaning: str
    fix: str
    look_in: str


def died_of(run: Run) -> LastError | None:
    """Return the error that ended a run, of several ranks that of the first to fail; None where none did."""
    message, _ = error_that_ended(run)
    if message is None:
        return None
    from mldebug_mcp.judge.explain_error import explain_lines  # few runs end in an error
    from mldebug_mcp.logs.failures import Prefixes

    prefixes = Prefixes()
    rank, words = prefixes.split(message.text)
    frame = ["Traceback (most recent call last):", '  File "<log>", line 1, in <module>', f"    {message.code}"]
    answer = explain_lines([*(frame if message.code else []), words])
    known = answer.matches[0] if answer.matches else None
    problem = "" if answer.problem == "unknown" else f"; a problem of {answer.problem}"
    first = None if run.ranks is None else run.ranks.first_failed
    if first is not None:
        rank = ".".join(first.rank)
    elif rank not in prefixes.ranks:
        rank = ""
    return LastError(
        words=shorten(words, MAX_MESSAGE_CHARACTERS),
        rank=rank,
        place=message.place,
        id="" if known is None else known.id,
        meaning=f"not a known message{problem}" if known is None else known.cause,
        fix=answer.advice if known is None else known.fix,
        look_in=_log_of(run, message),
    )


def _log_of(run: Run, message: Message) -> str:
    """Return the path of the log that holds the error, where it is known; else the message."""
    first = None if run.ranks is None else run.ranks.first_failed
    if first is not None:
        paths = [str(first.file)]
    else:
        paths = [path for path in run.logs if not message.file or path.endswith(message.file)]
    path = run.path if len(paths) != 1 else paths[0]
    return path if is_sendable(path) and is_file(expanded(path)) else shorten(message.text, 300)


def verdict_of_error(error: LastError, hypotheses: Sequence[Hypothesis]) -> RunVerdict:
    """Return the verdict on a run that an error ended, where no fault of the catalogue leads."""
    of_rank = f" of rank {error.rank}" if error.rank else ""
    named = f" [{error.id}]" if error.id else ""
    sound = (
        f"; its curves may be healthy ({percent(hypotheses[0].probability)})" if hypotheses[0].cause == SOUND else ""
    )
    return RunVerdict.model_construct(
        kind="fault",
        headline=f"It ended in an error{of_rank}: {error.words}{named}{sound}",
        facts=[f"it stands in {error.place}", whole_sentences(error.meaning, MAX_MEANING_CHARACTERS)],
        next="Read what this error means, with the line of your own code.",
        fix=capitalised(whole_sentences(error.fix, MAX_FIX_CHARACTERS)),
    )


# The verb `update_diagnosis`: the hypotheses after the outcome of a check.
#
# It keeps no state: the run is diagnosed again, or its findings are passed in.


OUTCOMES_ALONE = (
    "nothing but the outcomes is known here, as for any run: give the path, or the findings of diagnose_run"
)


def update_diagnosis(
    findings: Mapping[str, State | str],
    outcomes: Mapping[str, Outcome],
    kind: str = "unknown",
    path: str | Path = "",
    error: str = "",
    *,
    config: str | Path | None = None,
    reference: str | Path | None = None,
    run: str = "",
) -> Update:
    """Rank the causes again, given what was found before and how checks turned out.

    Args:
        findings: The state of each symptom that was judged: "present", "absent" or "unknown". What the log's numbers
            say besides is known from its `path` alone.
        outcomes: By the id of a next step (such as "lr_too_high.1"): whether it "confirms" or "refutes".
        kind: Kind of run, as the diagnosis gave it.
        path: The run. If it can be read, it is diagnosed again, and `findings` need only hold what has changed.
        error: The message of the error that ended the run, if one did; it counts as evidence, too.
        config: As in `diagnose_run`, like those that follow.
        reference: The run that `path` was compared with.
        run: Which run, where the path holds several.

    Raises:
        InputError: a symptom, a check or an outcome does not exist, and the message says where to find those that do;
            or the run cannot be read and no findings are given.
    """
    from mldebug_mcp.models import Update

    checked = evidence_from_checks(outcomes)
    known, notes = RunKnowledge(kind, _findings(findings), []), [] if path or findings or error else [OUTCOMES_ALONE]
    logged: Run | None = None
    if path:
        try:
            logged = read_run(path, config, run)
            known = _of_run(known, logged, read_run(reference) if reference is not None else None)
        except InputError as unreadable:
            if not findings:
                raise
            notes.append(f"only the findings passed in were used: {unreadable}")
    evidence = [*known.evidence, *evidence_from_message(error)]
    before = judge_causes(known.findings, known.kind, evidence, str(path) or "LOG")
    after = judge_causes(known.findings, known.kind, [*evidence, *checked], str(path) or "LOG")
    remaining = after
    if logged is not None:
        remaining = with_run_named(remaining, logged)
        remaining = with_fitting_fixes(logged, with_answers(logged, remaining, known.findings), known.findings)
    else:
        remaining = [of_learner(hypothesis, known.kind) for hypothesis in remaining]
    remaining = with_what_separates(without_made(remaining, outcomes))
    remaining = remaining if logged is None else with_rows(logged, known.findings, remaining)
    next_steps = order_next_steps(remaining)
    return Update(
        at_a_glance=_at_a_glance(logged, known, remaining, next_steps, outcomes),
        hypotheses=remaining,
        next_steps=next_steps,
        next_step=after_ranking(steps_asked(remaining, next_steps), remaining),
        notes=[*notes, *_moved(before, after, {cause_evidence.cause for cause_evidence in checked})],
    )


def _at_a_glance(
    run: Run | None,
    known: RunKnowledge,
    hypotheses: Sequence[Hypothesis],
    steps: Sequence[NextStep],
    outcomes: Mapping[str, Outcome],
) -> Glance:
    """Return what leads after the checks, and the command of the check that comes next."""
    from mldebug_mcp.judge.at_a_glance import glance_at_verdict  # only where checks were done

    read = RunSummary(
        path="" if run is None else run.path, formats=[], steps=0, metrics=list(run.series) if run else []
    )
    learner = known.kind if run is None else learner_of(run)
    verdict = verdict_of(read, Sheet(), known.findings, hypotheses, steps=steps, learner=learner)
    asked = steps[0] if steps else None
    command = ""
    if asked is not None and asked.call:
        command = as_command(asked.call)
    elif asked is not None and run is not None:
        made = [word for check, outcome in outcomes.items() for word in ("--outcome", f"{check}={outcome}")]
        command = diagnose_command(run, *made, "--outcome", f"{asked.id}=OUTCOME")
    return glance_at_verdict(verdict, command)


def _moved(before: Sequence[Hypothesis], after: Sequence[Hypothesis], checked: Collection[str]) -> list[str]:
    was = {hypothesis.cause: hypothesis.probability for hypothesis in before}
    return [
        f"{hypothesis.cause}: {percent(was[hypothesis.cause])} before the checks, "
        f"{percent(hypothesis.probability)} after"
        for hypothesis in after
        if hypothesis.cause in checked
    ]


def _of_run(given: RunKnowledge, run: Run, reference: Run | None) -> RunKnowledge:
    """Return what is known of a run; what was passed in takes precedence."""
    found = gather(run, reference, given.findings)
    return found if given.kind == "unknown" else replace(found, kind=given.kind)


def _findings(states: Mapping[str, State | str]) -> list[Finding]:
    """Return findings whose states alone are known: what is present says what it would be in any run."""
    known = {**symptoms("probe"), **symptoms()}
    for symptom, state in states.items():
        require_known(symptom, known, "symptom", "find the ids of symptoms in findings")
        require_known(str(state), set(map(str, State)), "state", "use present, absent or unknown")
    return [
        Finding(
            symptom=symptom, state=State(state), summary=as_clause(known[symptom]) if state == State.PRESENT else ""
        )
        for symptom, state in states.items()
    ]
