"""What the worker measured, typed. A field that is None was not measured, or could not be."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class _Part(BaseModel):
    # A later worker may measure more than this host knows.
    model_config = ConfigDict(frozen=True, extra="ignore")


class Failure(_Part):
    """Why the worker could not finish."""

    kind: str
    message: str
    where: str = ""


class Parameters(_Part):
    """The parameters as training began; shares are of elements."""

    frozen: list[str] = Field(default_factory=list)
    frozen_share: float = 0.0
    nonfinite_at_start: list[str] = Field(default_factory=list)
    not_in_optimizer: list[str] = Field(default_factory=list)
    not_in_optimizer_share: float | None = None
    stale_in_optimizer: int = 0
    learning_rates: list[float] | None = None
    decay_per_step: float | None = None


class Gradients(_Part):
    """The gradients of one pass; shares are of the trainable elements."""

    norm: float = 0.0
    trainable: int = 0
    none: list[str] = Field(default_factory=list)
    none_share: float = 0.0
    zero: list[str] = Field(default_factory=list)
    zero_share: float = 0.0
    nonfinite: list[str] = Field(default_factory=list)
    nonfinite_count: int = 0
    tiny: list[str] = Field(default_factory=list)
    tiny_share: float = 0.0


class Operation(_Part):
    """One operation of a pass, with the largest absolute values around it; None stands for NaN."""

    op: str = ""
    module: str = ""
    where: str = ""
    dtype: str = ""
    direction: str = "forward"
    largest_out: float | None = None
    share: float | None = None
    frames: list[Operation] = Field(default_factory=list)


class Reference(_Part):
    """What the loss should be."""

    uniform: float
    unigram: float | None = None
    variance: float | None = None
    least: float = 0.0
    contradicting_rows: list[int] = Field(default_factory=list)
    rows_without_labels: list[int] = Field(default_factory=list)
    trained_labels: int = 0
    distinct_labels: int | None = None


class Dependence(_Part):
    """On what the output depends, in evaluation mode."""

    inputs_change: float | None = None
    rows_mixed: bool | None = None
    row_change: float | None = None
    sees_future: bool | None = None
    future_change: float | None = None
    padding_seen: bool | None = None
    mask_used: bool | None = None
    batch_statistics: list[str] = Field(default_factory=list)
    dropout: list[str] = Field(default_factory=list)


class Curve(_Part):
    """A loop's losses."""

    losses: list[float] = Field(default_factory=list)
    ended: str = ""
    learning_rate: float | None = None
    memorised: bool = False
    rate_gone_at: int | None = None
    last_gradient: float | None = None


class SeedRun(_Part):
    """How training from the initial weights of one seed ended."""

    seed: int
    ended: str = ""
    final_loss: float | None = None


class Seeds(_Part):
    """The same training with several seeds; fixed if the user's code sets its own."""

    fixed: bool = False
    runs: list[SeedRun] = Field(default_factory=list)


class Watched(_Part):
    """A few of the user's own steps."""

    steps: int = 0
    optimizer_steps: int = 0
    steps_with_fresh_gradient: int = 0
    steps_without_it: int = 0
    optimizers: int = 0
    learning_rates: list[float] = Field(default_factory=list)
    leftover_gradient: float | None = None
    clip_factor: float | None = None
    decay_per_step: float | None = None
    rounded_away: float | None = None
    uphill: float | None = None


class ModeOutcome(_Part):
    """Loss and accuracy after training, in one mode."""

    loss: float
    accuracy: float | None = None
    rows: list[float] = Field(default_factory=list)


class Outcome(_Part):
    """What training came to."""

    train: ModeOutcome
    evaluation: ModeOutcome


class Movement(_Part):
    """Which parameters did not move."""

    still: list[str] = Field(default_factory=list)
    still_share: float = 0.0


class LayerScale(_Part):
    """The deviation of one weight matrix and what it would be by the formulas."""

    name: str
    std: float
    usual_init: float
    factor: float


class Init(_Part):
    """How the weight matrices begin, those farthest above the formula first."""

    largest: list[LayerScale] = Field(default_factory=list)


class FullPrecision(_Part):
    """The first pass in 32 bits."""

    loss: float | None = None
    gradients_finite: bool | None = None


class Measured(_Part):
    """Everything that a probe measured."""

    device: str = ""
    environment: dict[str, Any] = Field(default_factory=dict)
    inputs_finite: bool | None = None
    equal_sides: list[str] | None = None
    trained_labels: int | None = None
    labels_against_ids: dict[str, float] | None = None
    parameters: Parameters | None = None
    init: Init | None = None
    unregistered: list[str] | None = None
    initial_loss: float | None = None
    repeated_losses: list[float] | None = None
    replayed_losses: list[float] | None = None
    loss_rounding: float | None = None
    loss_has_graph: bool | None = None
    loss_formula: str | None = None
    goal: float | None = None
    targets: str | None = None
    output_dtype: str | None = None
    activations: list[Operation] | None = None
    gradients: Gradients | None = None
    gradients_after: Gradients | None = None
    first_nonfinite: Operation | None = None
    full_precision: FullPrecision | None = None
    dependence: Dependence | None = None
    reference: Reference | None = None
    watched: Watched | None = None
    update_ratio: float | None = None
    rates_tried: list[dict[str, float]] | None = None
    curve: Curve | None = None
    contrast: Curve | None = None
    same_draws: Curve | None = None
    seeds: Seeds | None = None
    movement: Movement | None = None
    alike_units: list[str] | None = None
    outcome: Outcome | None = None
    memorised: bool | None = None
    causal: bool | None = None
    distinct_inputs: int | None = None
    distinct_given: int | None = None
    made_in_call: list[str] | None = None
    changed_in_call: list[str] | None = None
    targets_drawn: str | None = None
    vocabulary: str | None = None
    in_training_mode: bool | None = None
    mode_modules: list[str] = Field(default_factory=list)
