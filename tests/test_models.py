from __future__ import annotations

import importlib
import json
import math
import pkgutil
import re
from pathlib import Path

import pytest
from pydantic import TypeAdapter, ValidationError

import mldebug_mcp
from mldebug_mcp import models
from mldebug_mcp.models import Finding, Model, Number, State
from mldebug_mcp.server.calls import answer_type
from mldebug_mcp.server.tools import TOOLS

NUMBER: TypeAdapter[float] = TypeAdapter(Number)


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (math.nan, '"nan"'),
        (math.inf, '"inf"'),
        (-math.inf, '"-inf"'),
        (3.0, "3"),
        (0.1234567891, "0.123457"),
        (1e300, "1e+300"),
    ],
)
def test_every_number_is_written_as_valid_json(value: float, written: str) -> None:
    assert NUMBER.dump_json(value).decode() == written


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 2.5])
def test_a_number_reads_back_as_it_was(value: float) -> None:
    back = NUMBER.validate_json(NUMBER.dump_json(value))
    assert back == value or (math.isnan(back) and math.isnan(value))


def test_the_schema_of_a_number_tells_of_the_three_strings() -> None:
    assert {"enum": ["nan", "inf", "-inf"], "type": "string"} in NUMBER.json_schema()["anyOf"]


def test_text_of_an_answer_is_cleaned_and_stays_encodable() -> None:
    finding = Finding(symptom="loss_spike", state=State.PRESENT, summary="at \x1b[31mstep\udc80\u202e 3")
    assert json.loads(finding.to_json())["summary"] == "at step\ufffd 3"


def test_a_model_refuses_fields_that_the_contract_does_not_have() -> None:
    with pytest.raises(ValidationError, match="advice"):
        Finding.model_validate({"symptom": "loss_spike", "state": "present", "advice": "lower the rate"})


def models_of_the_contract() -> list[type[Model]]:
    modules = [
        importlib.import_module(f"{models.__name__}.{one.name}") for one in pkgutil.iter_modules(models.__path__)
    ]
    found = {one for module in modules for one in vars(module).values() if isinstance(one, type)}
    return sorted((one for one in found if issubclass(one, Model)), key=lambda one: one.__name__)


@pytest.mark.parametrize("model", models_of_the_contract(), ids=lambda model: model.__name__)
def test_every_field_says_what_it_holds(model: type[Model]) -> None:
    assert [name for name, field in model.model_fields.items() if not field.description] == []
    assert model.__doc__


def test_a_number_with_a_unit_names_it() -> None:
    for model in models_of_the_contract():
        module = importlib.import_module(model.__module__)
        for name, field in model.model_fields.items():
            if name.endswith("_bytes"):
                assert "Sizes are bytes" in (module.__doc__ or "")
            if "probability" in name:
                assert "0 to 1" in (field.description or ""), f"{model.__name__}.{name}"


def test_what_a_notebook_shows_of_an_answer_is_a_line(examples: Path) -> None:
    diagnosis, run = mldebug_mcp.diagnose_run(examples / "loss_spike"), mldebug_mcp.read_run(examples / "loss_spike")
    assert str(diagnosis) == repr(diagnosis)
    assert re.fullmatch(r"<Diagnosis of .*: bad_batch \d+%, .*; seen: loss_spike, .*>", repr(diagnosis))
    assert repr(run).endswith("400 records, steps 1 to 400: loss, grad_norm, learning_rate>")
    assert repr(run["loss"]) == "<Series loss: 400 values, 4.755 to 2.33>"


def test_every_tool_is_a_function_of_the_package_and_its_answer_a_type_of_it() -> None:
    for tool in TOOLS:
        assert callable(getattr(mldebug_mcp, tool.__name__))
        assert getattr(mldebug_mcp, answer_type(tool).__name__) is answer_type(tool)
        assert {tool.__name__, answer_type(tool).__name__} <= set(mldebug_mcp.__all__)
