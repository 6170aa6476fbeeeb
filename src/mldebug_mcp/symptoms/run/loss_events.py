"""Does the training loss jump and come back, and if so, how?"""

from __future__ import annotations

from collections.abc import Callable
from inspect import cleandoc

from mldebug_mcp.logs.run import Run
from mldebug_mcp.measure.jumps import find_spikes
from mldebug_mcp.measure.rise import rise_for_good
from mldebug_mcp.symptoms import forms_of_jump
from mldebug_mcp.symptoms.forms_of_jump import Jumps
from mldebug_mcp.symptoms.jump_evidence import jump_evidence
from mldebug_mcp.symptoms.nats import by_nats
from mldebug_mcp.symptoms.registry import Answers, CannotTell, Evidence, Outcome, question
from mldebug_mcp.symptoms.spacing import regular
from mldebug_mcp.symptoms.telling import Teller, told
from mldebug_mcp.symptoms.terms import term_set_in

JUMPS = "loss_spike"
FEW, SHARE = 5, 50
"""More jumps than this, and than one in so many records, are noise."""


def _form(name: str, doc: str, background: float, *sources: str, follows: tuple[str, ...] = ()) -> Outcome:
    """Return an attribute of a loss that jumps; its background is how often the jump of a healthy run is like that."""
    return Outcome(name, cleandoc(doc), background, sources, of=JUMPS, follows=follows)


@question(
    Outcome(
        JUMPS,
        cleandoc("""The training loss jumps far above its recent level and comes back.

        Not this when: the curve is just noisy (many such points, or heavy tails); it stays up (`loss_divergence`); a
        term of the loss, zero until then, sets in there. A jump at the very end of the log counts, and the summary says
        that the log ends there. The factors were chosen on synthetic curves with normal, lognormal and heavy-tailed
        noise (`benchmarks/symptoms.py`).
        """),
        0.1,  # a large healthy run has twenty (palm_2022)
        ("axolotl_stability",),
        instead=("logits_grow", "loss_divergence", "loss_nonfinite"),
        as_chosen=True,
    ),
    _form(
        "loss_spike_single",
        """The training loss jumps once in the whole log and is back within a few records.

        Not this when: it jumps again; it climbs before it jumps or takes long to come back, as instabilities do. Of a
        log-density it cannot be told. The length was chosen by hand.
        """,
        0.4,
        "idefics_80b_chronicles",
    ),
    _form(
        "loss_spikes_recur",
        """The training loss jumps far above its recent level more than once.

        Not this when: the noise is heavy-tailed (`loss_noisy`).
        """,
        0.3,
        "palm_2022",
    ),
    _form(
        "loss_spikes_regular",
        """The training loss jumps at even distances, as when the same data comes again.

        Not this when: the distance is that of evaluations or checkpoints; the summary says whether it is that of
        evaluations or epochs. Judged only where the loss jumps three times. One distance before the first, where the
        loss may still fall too steeply for a jump to be told, a record above all its neighbours counts as one more.
        """,
        0.04,  # three distances that agree by chance
        "bekman_mle",
        follows=("loss_periodic",),
    ),
    _form(
        "loss_spikes_grow",
        """The loss jumps again and again, each time higher: the same rows would be better known each time.

        Not this when: there are fewer than four jumps, or they are as high at first as at last. The bounds were chosen
        by hand.
        """,
        0.005,
        "stable_lowprec_clip",
    ),
    _form(
        "loss_spike_high",
        """A jump of the training loss is as high as a good part of the loss at the start of the run.

        Not this when: it is lower, as hard batches and the twenty harmless spikes of a large run are. Of a log-density
        it cannot be told.
        """,
        0.3,
        "palm_2022",
        follows=("accuracy_below_chance",),
    ),
    _form(
        "loss_spike_nats",
        """The loss of a new language model jumps by a nat per token, for several records or several times.

        Not this when: one record alone jumps; the loss stays up (`loss_divergence`); the jumps are lower, as hard text
        makes them. Judged only where the loss begins at ln(vocabulary), as that of a model trained from scratch does.
        """,
        0.01,
        "palm_2022",
        "opt_175b_logbook",
    ),
    _form(
        "spike_back_at_once",
        """From its highest jump the loss is back at the level before from one record to the next.

        The weights are as good as before: those batches alone had such a loss. Not this when: it comes down over
        several records, or the log ends before. It cannot be told where a record is a mean over many steps. The band
        was chosen on our own runs.
        """,
        0.8,
        "idefics_80b_chronicles",
    ),
    _form(
        "spike_fades",
        """From its highest jump the loss comes back over several records, each of them still above the level before.

        What throws the weights off has to be learnt again. Not this when: it falls back from one record to the next,
        which does not tell where a record is a mean over many steps. The band was chosen on our own runs.
        """,
        0.15,
    ),
    _form(
        "spike_leaves_mark",
        """Behind its highest jump the loss stands above the level before it.

        Not this when: it is as low as before, or lower, as the loss goes on falling meanwhile. The bounds were chosen
        on our own runs.
        """,
        0.05,
    ),
    _form(
        "spike_gradient_before",
        """The gradient norm leaves its level before the loss jumps: to three times its median and beyond all before.

        Not this when: it is as before up to the last record, and moves at most with the loss, as one batch brings both
        about. It cannot be told where norms are logged clipped. The factors were chosen on our own runs.
        """,
        0.1,
        "bekman_mle",
        "glm_130b",
    ),
    _form(
        "spike_after_rate_jump",
        """The learning rate rises at once, by half or more, in the few records before the loss jumps.

        Not this when: the rate rises record by record, as in a warmup, or falls.
        """,
        0.03,
    ),
    _form(
        "spikes_same_place_of_pass",
        """Three jumps or more come at one and the same place of several passes over the data.

        Not this when: they come where one pass ends and the next begins, where a batch may be a small one; or anywhere.
        Judged only where the length of a pass is known and records are dense enough. The bound was chosen by hand.
        """,
        0.02,
        "bekman_mle",
    ),
    needs=("loss",),
    points=3,
    not_for=("grpo", "ppo", "rl"),
)
def loss_events(run: Run) -> Answers:
    """Say whether the training loss jumps and comes back, and if so, how."""
    loss = run["loss"].finite
    every = [one for one in find_spikes(loss.value) if term_set_in(run, float(loss.step[one.first])) is None]
    found = [one for one in every if one.recovered is not False]
    if not found or len(found) > max(FEW, len(loss) // SHARE):
        return {}
    if not any(spike.recovered for spike in found) and rise_for_good(run) is not None:
        raise CannotTell("the loss has jumped and is still up where the log ends (`loss_divergence`)")
    return {JUMPS: jump_evidence(Jumps(run, loss, found)), **told(_bound(Jumps(run, loss, every)))}


FORMS: dict[str, Callable[[Jumps], Evidence | None]] = {
    "loss_spike_single": forms_of_jump.single,
    "loss_spikes_recur": forms_of_jump.recurring,
    "loss_spikes_regular": regular,
    "loss_spikes_grow": forms_of_jump.growing,
    "loss_spike_high": forms_of_jump.high,
    "loss_spike_nats": by_nats,
    "spike_back_at_once": forms_of_jump.back_at_once,
    "spike_fades": forms_of_jump.fades,
    "spike_leaves_mark": forms_of_jump.leaves_mark,
    "spike_gradient_before": forms_of_jump.gradient_before,
    "spike_after_rate_jump": forms_of_jump.rate_before,
    "spikes_same_place_of_pass": forms_of_jump.same_place_of_pass,
}


def _bound(jumps: Jumps) -> dict[str, Teller]:
    def bind(tell: Callable[[Jumps], Evidence | None]) -> Teller:
        return lambda: tell(jumps)

    return {name: bind(tell) for name, tell in FORMS.items()}
