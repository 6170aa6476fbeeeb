"""Does the training loss rise, and does it come back?"""

from __future__ import annotations

from inspect import cleandoc

from mldebug_mcp.logs.run import Run
from mldebug_mcp.symptoms import risen
from mldebug_mcp.symptoms.registry import Answers, CannotTell, Evidence, Outcome, question
from mldebug_mcp.symptoms.telling import Teller, told


def _outcome(
    name: str, doc: str, background: float, *sources: str, follows: tuple[str, ...] = (), instead: tuple[str, ...] = ()
) -> Outcome:
    """Return a way of rising."""
    return Outcome(name, cleandoc(doc), background, sources, follows=follows, instead=instead)


@question(
    _outcome(
        "loss_divergence",
        """The training loss rises well above its best level and is still there at the end of the log.

        Not this when: it comes back (`loss_spike`); the rise is within the noise; the loss of an RL policy rises, which
        means nothing by itself. Unknown where the steps take longer just as the loss rises, as over samples that are
        sorted by their length, or a term of it sets in. The factors were chosen on synthetic curves with normal and
        heavy-tailed noise.
        """,
        0.01,
        "bekman_mle",
        follows=("accuracy_below_chance", "loss_falls_back", "loss_pattern_by_epoch"),
        instead=("logits_grow",),
    ),
    _outcome(
        "loss_hump",
        """The training loss climbs far above the level at which it began, for a stretch, and comes back down.

        Not this when: it stays up (`loss_divergence`); it rose from a good level, and not above the start
        (`loss_spike`); one or two records stand out. The multiples were chosen on runs trained at 10 to 400 times a
        good learning rate.
        """,
        0.004,
        follows=("loss_spike_single",),
    ),
    _outcome(
        "loss_rises",
        """The training loss rises slowly over the whole log: at its end it is higher than at its beginning.

        Not this when: it falls first; the rise is within the noise. Where it rises so far that it diverges or is not
        finite (`loss_divergence`, `loss_nonfinite`) this is unknown, so that one rise does not count twice.
        """,
        0.003,
        follows=("loss_above_start",),
    ),
    _outcome(
        "loss_climbs",
        """The training loss turns after it has come down, and climbs by 3 % or more over the last quarter of the log.

        Of the fall from the first loss that may be little, as most of that fall is easy. Not this when: it steps up at
        once, as with other data; it comes down again; it rises far (`loss_divergence`, where this is unknown). Judged
        only where the lowest level lies before the last quarter.
        """,
        0.002,
        "small_scale_proxies",
    ),
    Outcome(
        "divergence_after_decay",
        cleandoc("""The learning rate has come down to half of its peak or less where the loss begins to rise for good.

        A rate that was borne at its peak does not throw a run off later. Not this when: the rate still climbs, or is
        near its peak there. The share was chosen by hand.
        """),
        0.4,
        of="loss_divergence",
        as_chosen=True,
    ),
    Outcome(
        "divergence_with_calm_gradient",
        cleandoc("""The gradient norm keeps its level while the loss rises for good.

        Other rows, labels or terms bring such a rise about; weights that are thrown off have larger gradients.

        Not this when: the norm grows with the loss. It cannot be told where norms are logged clipped. The factor was
        chosen by hand.
        """),
        0.2,
        of="loss_divergence",
        as_chosen=True,
    ),
    needs=("loss",),
    not_for=("grpo", "ppo", "rl"),
)
def loss_rise(run: Run) -> Answers:
    """Say whether the training loss rises, and how: of several ways, the one that says most."""
    ways: dict[str, Teller] = {
        "loss_divergence": lambda: risen.for_good(run),
        "loss_hump": lambda: risen.and_back(run),
        "loss_rises": lambda: risen.throughout(run),
        "loss_climbs": lambda: risen.slowly(run),
    }
    answers = told(ways)
    seen = next((name for name, said in answers.items() if isinstance(said, Evidence)), None)
    rising = {name: said for name, said in answers.items() if name == seen or isinstance(said, CannotTell)}
    risen_for_good = answers.get("loss_divergence")
    if not isinstance(risen_for_good, Evidence):
        return rising
    onset = risen_for_good.steps[0]
    beside: dict[str, Teller] = {
        "divergence_after_decay": lambda: risen.after_decay(run, onset),
        "divergence_with_calm_gradient": lambda: risen.gradient_calm(run, onset),
    }
    return {**rising, **told(beside)}
