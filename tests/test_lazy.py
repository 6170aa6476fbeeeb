"""Dataclasses and patterns that are made on first use behave as the standard library's."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import re
import subprocess
import sys
from dataclasses import field
from typing import ClassVar

import numpy as np
import pytest

from mldebug_mcp.core.arrays import distinct, median, median_of_numbers, quantile
from mldebug_mcp.core.lazy import MIN_INSTANCES_TO_COMPILE, dataclass, regex, replace


@dataclass(frozen=True)
class Point:
    """A point that is not changed."""

    x: float
    tags: list[str] = field(default_factory=list, compare=False)


@dataclass(frozen=True)
class Named(Point):
    """A point with a name, which shows itself."""

    name: str = ""

    def __repr__(self) -> str:
        return f"<{self.name}>"


@dataclass
class Count:
    """Something that counts."""

    of: int = 0


@dataclass(frozen=True)
class Checked:
    """Refuses what is below zero."""

    value: int

    def __post_init__(self) -> None:
        if self.value < 0:
            raise ValueError("below zero")


class Loud(Count):
    """Calls the method of its base."""

    def __init__(self) -> None:
        super().__init__(3)


def test_instances_are_shown_compared_and_hashed_by_their_fields() -> None:
    assert repr(Point(1.0)) == "Point(x=1.0, tags=[])"
    assert Point(1.0, ["a"]) == Point(1.0, ["b"])
    assert Point(1.0) != Point(2.0)
    assert Point(1.0) != Named(1.0)
    assert len({Point(1.0), Point(1.0), Point(2.0)}) == 2
    assert repr(Named(1.0, name="best")) == "<best>"


def test_a_frozen_class_refuses_changes_and_one_that_is_not_has_no_hash() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Point(1.0).x = 2.0  # type: ignore[misc]
    count = Count()
    count.of = 4
    assert count == Count(4)
    with pytest.raises(TypeError, match="unhashable"):
        hash(count)


def test_fields_copies_and_pickles_are_those_of_any_dataclass() -> None:
    assert [one.name for one in dataclasses.fields(Named)] == ["x", "tags", "name"]
    assert dataclasses.replace(Named(1.0), name="new").name == "new"
    assert dataclasses.asdict(Count(2)) == {"of": 2}
    assert pickle.loads(pickle.dumps(Point(1.0, ["a"]))) == copy.deepcopy(Point(1.0))  # noqa: S301 - made here


def test_what_is_wrong_with_the_arguments_is_an_error_at_the_first_instance_too() -> None:
    with pytest.raises(ValueError, match="below zero"):
        Checked(-1)
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        Checked()  # type: ignore[call-arg]
    assert Loud().of == 3


@pytest.mark.parametrize("arguments", [{"of": 1, "at": 2}, {"at": 2}])
def test_arguments_that_no_field_takes_are_an_error(arguments: dict[str, int]) -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'at'"):
        Count(**arguments)


def test_arguments_that_are_given_twice_or_too_many_are_an_error() -> None:
    with pytest.raises(TypeError, match="multiple values for argument 'of'"):
        Count(1, of=2)  # type: ignore[misc]
    with pytest.raises(TypeError, match="takes from 1 to 2 positional arguments"):
        Count(1, 2)  # type: ignore[call-arg]


def test_instances_stay_alike_however_many_there_are_and_share_no_list() -> None:
    points = [Point(float(number)) for number in range(2 * MIN_INSTANCES_TO_COMPILE)]
    points[0].tags.append("first")
    assert points[1:] == [Point(float(number), []) for number in range(1, 2 * MIN_INSTANCES_TO_COMPILE)]
    assert points[-1].tags == []
    for point in (points[0], points[-1]):
        with pytest.raises(dataclasses.FrozenInstanceError):
            del point.x


def test_a_pattern_works_as_a_compiled_one_and_a_wrong_one_fails_when_it_is_used() -> None:
    word = regex(r"(?P<name>\w+)=(\d+)", re.ASCII)
    found = word.search("loss=3")
    assert found is not None
    assert found["name"] == "loss"
    assert word.sub("#", "a=1 b=2") == "# #"
    assert word.groups == 2
    with pytest.raises(re.error):
        regex("(").search("")


@pytest.mark.parametrize("values", [[3.0], [2.0, 1.0], [1, 4, 2, 9], [5.0, np.nan, 1.0], [np.inf, 1.0, -np.inf]])
def test_medians_quantiles_and_distinct_values_are_those_of_numpy(values: list[float]) -> None:
    assert np.array_equal(median(values), np.median(values), equal_nan=True)
    assert np.array_equal(median_of_numbers(values), np.nanmedian(values), equal_nan=True)
    assert np.array_equal(distinct(np.array(values)), np.unique(values), equal_nan=True)
    drawn = np.random.default_rng(len(values)).normal(size=20 + len(values))
    assert [quantile(drawn, share) for share in (0.0, 0.05, 0.2, 0.5, 0.975, 1.0)] == np.quantile(
        drawn, (0.0, 0.05, 0.2, 0.5, 0.975, 1.0)
    ).tolist()


def test_a_diagnosis_from_the_shell_loads_none_of_what_it_does_not_need() -> None:
    code = (
        "import sys; from mldebug_mcp.cli import main; main(['diagnose', 'examples/healthy']); "
        "print(*sys.modules, file=sys.stderr)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(ended.stderr.split())
    assert not loaded & {"polars", "scipy", "torch", "pandas", "tomlkit", "mcp"}


@dataclass
class Tallied(Count):
    """Counts on from what it is given, with a constant that is no field."""

    step: ClassVar[int] = 2
    seen: list[int] = field(default_factory=list)


def test_a_copy_with_other_values_is_that_of_the_standard_library() -> None:
    named, tallied = Named(1.0, ["a"], "b"), Tallied(3, [1])
    assert vars(replace(named, x=2.0)) == vars(dataclasses.replace(named, x=2.0))
    assert vars(replace(tallied, of=4)) == vars(dataclasses.replace(tallied, of=4)) == {"of": 4, "seen": [1]}
    with pytest.raises(ValueError, match="below zero"):
        replace(Checked(1), value=-1)
    with pytest.raises(TypeError):
        replace(Count(1), unknown=2)  # type: ignore[call-arg]
