"""An explanation of an error takes the values that its message states: names, allowed values, types and both shapes."""

from __future__ import annotations

import pytest

from mldebug_mcp import explain_error

STATED = {
    "an argument that a function does not take": (
        "TypeError: PackedDataset.__init__() got an unexpected keyword argument 'max_lenght'",
        ["PackedDataset", "max_lenght"],
    ),
    "two shapes that are multiplied": (
        "RuntimeError: mat1 and mat2 shapes cannot be multiplied (16x8192 and 2048x128)",
        ["8192", "2048"],
    ),
    "an attribute that a module lacks": (
        "AttributeError: module 'zarr' has no attribute 'DirectoryStore'",
        ["zarr", "DirectoryStore"],
    ),
    "a key that is not there": ("KeyError: 'chosen_text'", ["chosen_text"]),
    "a value that is not allowed": (
        "ValueError: on_overflow must be one of ['truncate', 'split'], got 'chop'",
        ["chop", "truncate", "split"],
    ),
    "a number that another one does not divide": (
        "ValueError: batch_size (10) must be divisible by group_size (4)",
        ["10", "4"],
    ),
    "a value on the command line that no option takes": (
        "usage: fit.py [-h] [--bf16]\nfit.py: error: unrecognized arguments: yes",
        ["yes"],
    ),
    "a command that lacks what it needs": (
        "usage: fit.py [-h] --data DATA\nfit.py: error: the following arguments are required: --data",
        ["--data"],
    ),
    "types that an operator does not join": (
        "TypeError: '<=' not supported between instances of 'float' and 'str'",
        ["<=", "float", "str"],
    ),
    "a key that a configuration lacks": (
        "omegaconf.errors.ConfigAttributeError: Key 'warmup' is not in struct\n    full_key: optim.warmup\n",
        ["optim.warmup"],
    ),
}


@pytest.mark.parametrize(("message", "values"), STATED.values(), ids=STATED)
def test_the_cause_names_the_values_of_the_message(message: str, values: list[str]) -> None:
    match = explain_error(message).matches[0]
    for value in values:
        assert value in f"{match.cause} {match.fix}", match


def test_a_sentence_in_the_place_of_a_name_is_not_taken_over() -> None:
    text = "the cause is healthy and nothing has to be done"
    answer = explain_error(f"KeyError: '{text}'")
    assert all(text not in f"{match.cause} {match.fix}" for match in answer.matches)


def test_a_long_message_of_many_values_gets_a_bounded_cause() -> None:
    allowed = ", ".join(f"'mode_{number}'" for number in range(5000))
    matches = explain_error(f"ValueError: mode must be one of [{allowed}], got 'fast'").matches
    assert all(len(match.cause) + len(match.fix) < 2000 for match in matches)


def test_edges_in_columns_are_known_by_the_graph_layer_that_joins_them() -> None:
    message = (
        "RuntimeError: Sizes of tensors must match except in dimension 1. Expected size 9 but got size 2 for tensor "
        "number 1 in the list."
    )
    frame = 'Traceback (most recent call last):\n  File "/opt/lib/python3.11/site-packages/{}/loop.py", line 5, in f\n'
    code = "    edge_index = torch.cat([edge_index, loop_index], dim=1)\n"
    assert explain_error(frame.format("torch_geometric") + code + message).matches[0].id == "edge_index_turned"
    assert explain_error(frame.format("mymodels") + code + message).matches[0].id != "edge_index_turned"
