from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mldebug_mcp.logs import read_run
from mldebug_mcp.logs.columns import Floats
from mldebug_mcp.logs.run import Run
from mldebug_mcp.logs.settings import Scalar
from mldebug_mcp.models import State
from tests.runs import noisy, run_of, run_of_records, seen, state

OUTCOMES = ("grad_part_zero", "grad_fades_with_depth")


def run_with(levels: dict[str, float], config: dict[str, Scalar] | None = None, count: int = 20) -> Run:
    norms: dict[str, Floats] = {
        f"grad_norm/{name}": noisy(np.full(count, level), 0.3, seed)
        for seed, (name, level) in enumerate(levels.items())
    }
    return run_of(norms, loss=[2.0] * count, config=config)


def present(levels: dict[str, float], config: dict[str, Scalar] | None = None, count: int = 20) -> list[str]:
    run = run_with(levels, config, count)
    return [name for name in OUTCOMES if state(name, run) is State.PRESENT]


def by_depth(ratio: float, layers: int = 8) -> dict[str, float]:
    """Return norms that change by `ratio` from the last layer to the first."""
    return {f"layer_{number}": level for number, level in enumerate(np.geomspace(ratio, 1.0, layers).tolist())}


def test_a_part_without_a_gradient_beside_others_is_present_and_named() -> None:
    finding = seen("grad_part_zero", run_with({"encoder": 0.0, "head": 0.5}))
    assert finding.state is State.PRESENT
    assert "encoder" in finding.summary


def test_norms_that_shrink_a_thousandfold_towards_the_first_layer_are_present() -> None:
    assert present(by_depth(1e-5)) == ["grad_fades_with_depth"]


@pytest.mark.parametrize(
    ("levels", "config", "count"),
    [
        (by_depth(0.02), None, 20),
        (by_depth(50.0), None, 20),
        (by_depth(1e-5, layers=3), None, 20),
        ({"layer_0": 1.0, "layer_1": 1e-5, "layer_2": 0.5, "layer_3": 1e-4, "layer_4": 1.0}, None, 20),
        ({"encoder": 0.0, "head": 0.5}, {"freeze_encoder": True}, 20),
        ({"layers_3_expert_2": 0.0, "layers_3_expert_1": 0.2}, None, 20),
        ({"lora_a": 0.0, "lora_b": 0.5}, None, 2),
        ({"encoder": 0.0, "head": 0.0}, None, 20),
        ({"embedding": 1e-6, "head": 0.5}, None, 20),
    ],
    ids=["fifty", "a fiftieth", "three", "no order", "frozen", "expert", "first steps", "all zero", "small"],
)
def test_parts_of_sound_models_are_not_present(
    levels: dict[str, float], config: dict[str, Scalar] | None, count: int
) -> None:
    assert present(levels, config, count) == []


def test_without_norms_of_parts_it_cannot_be_told() -> None:
    run = run_of(loss=[2.0] * 20, grad_norm=[1.0] * 20)
    assert {state(name, run) for name in OUTCOMES} == {State.UNKNOWN}


def test_the_first_and_the_last_layer_alone_are_enough_where_they_are_named_so() -> None:
    ends = {"grad_norm/first_layer": np.full(20, 1e-9), "grad_norm/last_layer": np.full(20, 0.5)}
    assert state("grad_fades_with_depth", run_of({"grad_norm": np.full(20, 0.5), **ends})) is State.PRESENT


def test_a_last_layer_whose_gradient_is_a_hundred_times_that_of_the_first_is_absent() -> None:
    ends = {"grad_norm/first_layer": np.full(20, 0.005), "grad_norm/last_layer": np.full(20, 0.5)}
    assert state("grad_fades_with_depth", run_of({"grad_norm": np.full(20, 0.5), **ends})) is State.ABSENT


def test_a_part_that_gets_hardly_anything_of_the_gradient_of_the_whole_is_seen() -> None:
    rows = [{"step": at, "loss": 1.4, "grad_norm": 0.4, "grad/first_layer": 5e-9} for at in range(1, 40)]
    assert state("grad_fades_with_depth", run_of_records(rows)) is State.PRESENT
    rows = [{**row, "grad/first_layer": 4e-3} for row in rows]
    assert state("grad_fades_with_depth", run_of_records(rows)) is not State.PRESENT


@pytest.mark.parametrize("names", [("grad_first", "grad_last"), ("grad.input", "grad.head")])
def test_ends_that_stand_behind_the_gradient_alone_are_understood(names: tuple[str, str]) -> None:
    ends = dict(zip(names, (np.full(20, 1e-9), np.full(20, 0.5)), strict=True))
    assert state("grad_fades_with_depth", run_of({"loss": np.ones(20), **ends})) is State.PRESENT


@pytest.mark.parametrize(("place", "expected"), [("gradients", State.PRESENT), ("weights", State.UNKNOWN)])
def test_norms_of_weights_in_a_place_of_gradients_are_those_of_gradients(place: str, expected: State) -> None:
    layers = {f"{place}/layers.{at}.weight_norm": np.full(20, 10.0 ** (at - 8)) for at in range(8)}
    assert state("grad_fades_with_depth", run_of({"loss": np.ones(20), **layers})) is expected


@pytest.mark.parametrize(("names", "expected"), [
    ("log10|dx| t{}", State.PRESENT), ("train/log10_grad_layer{}", State.PRESENT), ("log10(gnorm) h.{}", State.PRESENT),
    ("|dh| t{}", State.PRESENT), ("log10 lr {}", State.UNKNOWN),
])  # fmt: skip
def test_sizes_of_gradients_by_their_sign_are_those_of_places_and_may_be_logarithms(
    names: str, expected: State
) -> None:
    for decades, seen_as in ((0.7, expected), (0.02, State.UNKNOWN)):
        sizes = {names.format(at): (at - 59) * decades - 0.9 for at in (0, 30, 59)}
        places = {name: np.full(20, size if "log" in name else 10**size) for name, size in sizes.items()}
        run = run_of({"loss": np.ones(20), "grad_norm": np.full(20, 0.2), **places})
        assert state("grad_fades_with_depth", run) is seen_as


PLACES = {
    "time": (
        "[{at:4d}] ce 2.30 acc 0.1 gn 0.3 | dL/dh t39 {3} t30 {2} t20 {1} t10 {0} t0 1e-8 | |h|sat 0.00",
        "dL/dh/t0",
    ),
    "layers": ("step {at} loss 2.30 | grad l1 {0} l2 {1} l3 {2} l4 {3} | lr 1e-3", "grad/layer1"),
    "equals": ("step {at} loss 2.30 gnorm layer0={0} layer1={1} layer2={2} layer3={3}", "gnorm/layer0"),
    "list": ("step {at} loss 2.30 grad norms: [{0}, {1}, {2}, {3}]", "grad norms/0"),
}


@pytest.mark.parametrize("style", PLACES)
@pytest.mark.parametrize(("fades", "present"), [(2.0, True), (0.1, False)])
def test_gradients_of_places_behind_one_word_are_read_as_a_course(
    style: str, fades: float, present: bool, tmp_path: Path
) -> None:
    line, first = PLACES[style]
    levels = [f"{0.07 * 10 ** (fades * (depth - 3)):.2e}" for depth in range(4)]
    far = f"{0.07 * 10 ** (-4 * fades):.2e}"
    text = "".join(line.replace("1e-8", far).format(*levels, at=20 * at) + "\n" for at in range(1, 40))
    (tmp_path / "train.log").write_text(text)
    run = read_run(tmp_path / "train.log")
    assert run[first].value[0] == pytest.approx(float(far if style == "time" else levels[0]))
    assert (state("grad_fades_with_depth", run) is State.PRESENT) is present
