"""Kinds of messages that many libraries raise: conversions, mixed types, taken names, order, labels, positions."""

from __future__ import annotations

import pytest

from mldebug_mcp import explain_error
from mldebug_mcp.models import ErrorMatch

HEAD = "Traceback (most recent call last):\n"
LIBRARY = '  File "/opt/venv/lib/python3.11/site-packages/{}", line 3, in f\n    {}\n'


def first(message: str, *frames: tuple[str, str]) -> ErrorMatch:
    lines = "".join(LIBRARY.format(*frame) for frame in frames)
    return explain_error(f"{HEAD}{lines}{message}\n").matches[0]


KINDS = {
    "polars reads text in a column of whole numbers": (
        "polars.exceptions.ComputeError: could not parse `n/a` as dtype `i64` at column 'clicks' (column number 2)",
        "number_text_invalid",
        ["n/a", "clicks", "null_values"],
    ),
    "polars finds a fraction in a column of whole numbers": (
        "polars.exceptions.ComputeError: could not parse `2.5` as dtype `i64` at column 'b' (column number 2)",
        "number_text_invalid",
        ["2.5", "with a fraction"],
    ),
    "pandas reads text as a number": ("ValueError: Unable to parse string 'abc'", "number_text_invalid", ["abc"]),
    "numpy reads its own text as a number": (
        "ValueError: could not convert string to float: np.str_('low')",
        "tf_cast_string",
        ["`low`"],
    ),
    "pandas reads a date of another format": (
        'ValueError: time data "31/01/2024" doesn\'t match format "%Y-%m-%d".',
        "date_text_invalid",
        ["31/01/2024", "%Y-%m-%d"],
    ),
    "polars reads a date of another format": (
        "polars.exceptions.InvalidOperationError: conversion from `str` to `date` failed in column 'd' for 1 out of 2 "
        'values: ["05.01.2024"]',
        "date_text_invalid",
        ["05.01.2024"],
    ),
    "arrow reads text as a date": (
        "pyarrow.lib.ArrowInvalid: Failed to parse string: 'x' as a scalar of type timestamp[s]",
        "date_text_invalid",
        ["`x`", "date"],
    ),
    "arrow reads text as a number": (
        "pyarrow.lib.ArrowInvalid: Failed to parse string: '\"n\\/a\"' as a scalar of type double",
        "arrow_cast",
        ["n/a", "number"],
    ),
    "dates meet fractions in one array": (
        "numpy.exceptions.DTypePromotionError: The DType <class 'numpy.dtypes.Float64DType'> could not be promoted by "
        "<class 'numpy.dtypes.DateTime64DType'>. This means that no common DType exists for the given inputs.",
        "column_types_mixed",
        ["float64", "datetime64"],
    ),
    "text meets numbers in a sum": (
        "numpy._core._exceptions._UFuncNoLoopError: ufunc 'add' did not contain a loop with signature matching types "
        "(dtype('<U1'), dtype('float64')) -> None",
        "column_types_mixed",
        ["text", "float64"],
    ),
    "an array of zarr exists": (
        "zarr.errors.ContainsArrayError: An array exists in store LocalStore('file://a.zarr') at path ''.",
        "stored_name_taken",
        ["its own name"],
    ),
    "a table exists": ("ValueError: Table 'runs' already exists.", "stored_name_taken", ["if_exists"]),
    "a column exists": ("ValueError: cannot insert a, already exists", "column_name_twice", ["reset_index"]),
    "a buffer has the name of an attribute": (
        "KeyError: \"attribute 'mask' already exists\"",
        "module_name_taken",
        ["register_buffer"],
    ),
    "indices of h5py are shuffled": (
        "TypeError: Indexing elements must be in increasing order",
        "index_not_increasing",
        ["np.argsort"],
    ),
    "keys of a join are not sorted": ("ValueError: left keys must be sorted", "rows_not_sorted", ["sort_values"]),
    "keys occur twice": (
        "ValueError: cannot reindex on an axis with duplicate labels",
        "index_not_unique",
        ["duplicated"],
    ),
    "labels of XGBoost count from 1": (
        "xgboost.core.XGBoostError: [12:24:02] /xgboost/src/objective/multiclass_obj.cu:64: Check failed: valid: "
        "SoftmaxMultiClassObj: label must be discrete values in the range of [0, num_class).",
        "trees_labels",
        ["LabelEncoder"],
    ),
    "a void label is in one_hot": (
        "RuntimeError: Class values must be smaller than num_classes.",
        "one_hot_class",
        ["255"],
    ),
    "a vocabulary is too large for its corpus": (
        "RuntimeError: INTERNAL: src/trainer_interface.cc(744) Vocabulary size too high (8000). Please set it to a "
        "value <= 60.",
        "vocabulary_size_corpus",
        ["8,000", "60"],
    ),
    "a number of one letter is out of range": (
        "ValueError: `r` should be a positive integer value but the value passed is 0",
        "setting_out_of_range",
        ["`r`", "positive integer", "0"],
    ),
}


@pytest.mark.parametrize(("message", "kind", "words"), KINDS.values(), ids=KINDS)
def test_a_message_is_named_by_its_kind_with_its_values(message: str, kind: str, words: list[str]) -> None:
    match = first(message)
    assert match.id == kind
    for word in words:
        assert word in f"{match.cause} {match.fix}"


POSITIONS = ("transformers/models/roberta/modeling_roberta.py", "torch.gather(buffered, dim=1, index=position_ids)")
TOKENS = ("transformers/models/gpt2/modeling_gpt2.py", "inputs_embeds = self.wte(input_ids)")
BELOW = ("torch/nn/functional.py", "return torch.embedding(weight, input)")


@pytest.mark.parametrize(
    ("message", "frames", "kind"),
    [
        ("RuntimeError: index 514 is out of bounds for dimension 1 with size 514", [POSITIONS], "positions_exceeded"),
        ("IndexError: index out of range in self", [POSITIONS, BELOW], "positions_exceeded"),
        ("IndexError: index out of range in self", [TOKENS, BELOW], "index_out_of_range_self"),
        ("IndexError: index out of range in self", [], "index_out_of_range_self"),
    ],
)
def test_the_frames_tell_a_length_from_a_token(message: str, frames: list[tuple[str, str]], kind: str) -> None:
    assert first(message, *frames).id == kind


def test_a_column_that_trl_lacks_is_named_by_the_formats_of_trl() -> None:
    table = ("datasets/formatting/formatting.py", "value = self.data[key]")
    trl = ("trl/trainer/dpo_trainer.py", 'if not example["rejected"].endswith(eos):')
    assert first("KeyError: 'rejected'", trl, table).id == "trl_column_missing"
    assert first("KeyError: 'rejected'", table).id == "table_column_missing"


USAGE = "usage: fit.py [-h] [--local_rank RANK] [--lr LR]\nfit.py: error: unrecognized arguments: {}\n"


def test_options_are_unknown_by_what_the_parser_says_and_not_by_its_usage() -> None:
    match = explain_error(USAGE.format("--local-rank=0") + USAGE.format("--local-rank=1")).matches[0]
    assert match.id == "local_rank_option"
    assert match.cause.startswith("The script has no option `--local-rank`. torch.distributed.launch passes")
    other = explain_error(USAGE.format("--epoch 3") + USAGE.format("--epoch 3")).matches[0]
    assert other.cause == "The script has no option `--epoch`."


@pytest.mark.parametrize(
    "message",
    [
        "click.exceptions.NoSuchOption: No such option '--lrr'.",
        "absl.flags._exceptions.UnrecognizedFlagError: Unknown command line flag 'lrr'. Did you mean: lr ?",
        "ValueError: Some specified arguments are not used by the HfArgumentParser: ['--lrr', '3']",
    ],
)
def test_other_parsers_name_the_option_too(message: str) -> None:
    assert explain_error(message).matches[0].cause == "The script has no option `--lrr`."


def test_types_that_are_offered_are_not_taken_for_names_of_choices() -> None:
    match = first("ValueError: Unsupported type: float. Expected one of: str, dict, list")
    assert match.cause == "The call takes `str`, `dict`, `list`, and gets a float."


CHECK = ("mylib/checks.py", "raise ValueError(message)")


def test_of_a_message_known_by_its_kind_alone_the_deciding_sentence_stands_first() -> None:
    text = "ValueError: The loader was looked at. The rows of a shard belong to one speaker, and shard 3 has two."
    answer = explain_error(f"{HEAD}{LIBRARY.format(*CHECK)}{text}\n")
    assert answer.matches[0].id == "library_refuses"
    assert answer.at_a_glance.headline.startswith(f"The message says it itself: {text}")
    asked = explain_error(
        f"{HEAD}{LIBRARY.format(*CHECK)}ValueError: Shards were read. No speaker was given for them.\n"
    )
    assert asked.matches[0].id == "setting_missing"
    assert asked.at_a_glance.headline.startswith("The message says it itself: No speaker was given for them.")
    assert asked.matches[0].cause.startswith("By the words of the message, ")
    assert "speaker" not in f"{asked.matches[0].cause} {asked.matches[0].fix} {asked.advice}"


def test_to_set_a_value_lower_is_not_to_give_one_that_is_missing() -> None:
    answer = explain_error("ValueError: Window size too high (80). Please set it to 40.")
    assert [match.id for match in answer.matches if match.id == "setting_missing"] == []
