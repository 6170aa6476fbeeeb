"""What a person is told to run can be run: each call of the playbook is a command of this command line."""

from __future__ import annotations

import re
import shlex

import pytest

from mldebug_mcp.cli import make_parser
from mldebug_mcp.judge.next_call import as_command
from mldebug_mcp.knowledge import catalogue

CALLS = sorted({step.call for cause in catalogue().causes.values() for step in cause.next_steps if step.call})


@pytest.mark.parametrize("call", CALLS)
def test_a_call_of_the_playbook_is_a_command_that_the_parser_takes(call: str) -> None:
    program, *words = shlex.split(as_command(call.replace("{path}", "runs/my run's log.jsonl")))
    assert program == "mldebug-mcp"
    parsed = vars(make_parser().parse_args(words))
    given = re.findall(r'="([^"]*)"', call.replace("{path}", "runs/my run's log.jsonl"))
    several = {one for name in ("text", "paths") for one in parsed.get(name) or ()}
    assert set(given) <= {value for value in parsed.values() if isinstance(value, str)} | several


def test_what_is_no_call_of_a_tool_stays_as_it_is() -> None:
    assert as_command("update_diagnosis(outcomes={})") == "update_diagnosis(outcomes={})"
