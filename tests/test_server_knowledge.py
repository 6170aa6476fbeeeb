"""The knowledge over MCP: menus, error messages, the skill with its manifest, prompts and completion."""

from __future__ import annotations

import hashlib
import re
from collections.abc import AsyncIterator
from typing import Any, Literal

import pytest
import yaml
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import PaginatedRequestParams, Request, ResourceTemplateReference

from mldebug_mcp.server import make_server
from mldebug_mcp.server.resources import URI, GetSkillParams, GetSkillResult, ListSkillsResult

pytestmark = pytest.mark.anyio


class ListSkills(Request[PaginatedRequestParams, Literal["skills/list"]]):
    method: Literal["skills/list"] = "skills/list"
    params: PaginatedRequestParams


class GetSkill(Request[GetSkillParams, Literal["skills/get"]]):
    method: Literal["skills/get"] = "skills/get"
    params: GetSkillParams


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    async with Client(make_server(), raise_exceptions=True) as connected:
        yield connected


async def read(client: Client, uri: str) -> str:
    text: str = (await client.read_resource(uri)).contents[0].text  # type: ignore[union-attr]
    return text


async def listed_skill(client: Client) -> dict[str, Any]:
    answer = await client.session.send_request(ListSkills(params=PaginatedRequestParams()), ListSkillsResult)
    assert answer.cache_scope == "public"
    assert len(answer.skills) == 1
    return answer.skills[0]


async def test_the_server_declares_the_skills_extension(client: Client) -> None:
    assert client.server_capabilities.extensions is not None
    assert "io.modelcontextprotocol/skills" in client.server_capabilities.extensions
    assert client.server_capabilities.resources is not None


async def test_every_file_of_the_skill_is_readable_and_fits_its_digest_and_size(client: Client) -> None:
    skill = await listed_skill(client)
    uris = [file["uri"] for file in skill["resources"]]
    assert len(uris) == len(set(uris)) <= 512
    assert {URI, "skill://mldebug/PLAYBOOK.md", "skill://mldebug/references/rl.md"} <= set(uris)
    for file in skill["resources"]:
        content = (await read(client, file["uri"])).encode()
        assert len(content) == file["size"]
        assert f"sha256:{hashlib.sha256(content).hexdigest()}" == file["digest"]


async def test_the_frontmatter_of_the_entry_is_that_of_the_file(client: Client) -> None:
    skill = await listed_skill(client)
    assert skill["frontmatter"] == yaml.safe_load((await read(client, URI)).split("---\n", 2)[1])
    assert skill["uri"] == f"skill://{skill['frontmatter']['name']}/SKILL.md"


async def test_the_resource_of_the_skill_bears_its_name_and_description(client: Client) -> None:
    listed = {str(one.uri): one for one in (await client.list_resources()).resources}
    frontmatter = (await listed_skill(client))["frontmatter"]
    assert (listed[URI].name, listed[URI].description) == (frontmatter["name"], frontmatter["description"])


async def test_a_skill_is_got_by_its_uri_and_another_uri_is_refused(client: Client) -> None:
    answer = await client.session.send_request(GetSkill(params=GetSkillParams(uri=URI)), GetSkillResult)
    assert answer.skill == await listed_skill(client)
    with pytest.raises(MCPError) as refused:
        await client.session.send_request(GetSkill(params=GetSkillParams(uri="skill://other/SKILL.md")), GetSkillResult)
    assert refused.value.code == -32602


async def test_links_of_the_skill_resolve_among_its_files(client: Client) -> None:
    files = {file["uri"] for file in (await listed_skill(client))["resources"]}
    import re

    links = re.findall(r"\]\(((?:references|evidence)/[\w./-]+|PLAYBOOK\.md)", await read(client, URI))
    assert links
    assert {f"skill://mldebug/{link}" for link in links} <= files


@pytest.mark.parametrize(
    ("uri", "said"),
    [
        ("mldebug://menus", "menu_nan"),
        ("mldebug://errors", "cuda_oom"),
        ("mldebug://menu/menu_nan", "invalid_math"),
        ("mldebug://error/cuda_oom", "micro-batch"),
        ("skill://mldebug/evidence/bloom_lessons.md", "## bloom_patience"),
    ],
)
async def test_menus_errors_and_records_are_resources(client: Client, uri: str, said: str) -> None:
    assert said in await read(client, uri)


@pytest.mark.parametrize(
    "uri",
    [
        "mldebug://menu/bad_batch",
        "mldebug://error/nothing",
        "skill://mldebug/evidence/nobody.md",
        "skill://mldebug/evidence/..%2FSKILL.md",
    ],
)
async def test_what_is_not_there_is_refused_by_its_name_in_a_field_that_clients_read(client: Client, uri: str) -> None:
    with pytest.raises(MCPError) as refused:
        await client.read_resource(uri)
    assert refused.value.error.data == {"uri": uri}


@pytest.mark.parametrize(
    ("template", "typed", "completed"),
    [
        ("mldebug://cause/{id}", "lr_too", "lr_too_high"),
        ("mldebug://symptom/{id}", "loss_sp", "loss_spike"),
        ("mldebug://quote/{id}", "karpathy", "karpathy_mistakes_four"),
        ("mldebug://source/{id}", "bloom", "bloom_lessons"),
        ("mldebug://menu/{id}", "nan", "menu_nan"),
        ("mldebug://error/{id}", "watchdog", "nccl_watchdog"),
        ("skill://mldebug/evidence/{record}", "bloom", "bloom_lessons.md"),
    ],
)
async def test_ids_are_completed(client: Client, template: str, typed: str, completed: str) -> None:
    name = template.partition("{")[2].rstrip("}")
    answer = await client.complete(
        ResourceTemplateReference(type="ref/resource", uri=template), {"name": name, "value": typed}
    )
    assert completed in answer.completion.values


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("why_did_my_loss_spike", {"path": "runs/7", "step": "812"}, "812"),
        ("debug_training_run", {"path": "runs/7"}, "runs/7"),
        ("before_you_train", {"task": "a 7B model on my chats"}, "7B model"),
    ],
)
async def test_prompts_carry_what_the_user_said(
    client: Client, name: str, arguments: dict[str, str], said: str
) -> None:
    prompt = await client.get_prompt(name, arguments)
    assert said in prompt.messages[0].content.text  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("debug_training_run", {}, "needs the argument 'path'; it takes: path, question (optional)"),
        ("before_you_train", {"tusk": "x"}, "has no argument 'tusk'"),
        ("debug_my_run", {"path": "runs/7"}, "no prompt 'debug_my_run'; there are: debug_training_run,"),
    ],
)
async def test_a_prompt_asked_for_in_the_wrong_way_says_what_it_takes(
    client: Client, name: str, arguments: dict[str, str], said: str
) -> None:
    with pytest.raises(MCPError, match=re.escape(said)):
        await client.get_prompt(name, arguments)


async def test_an_error_message_is_explained_over_the_wire(client: Client) -> None:
    result = await client.call_tool(
        "explain_error", {"text": "RuntimeError: CUDA out of memory. Tried to allocate 2 GiB"}
    )
    assert result.structured_content is not None
    assert result.structured_content["matches"][0]["id"] == "cuda_oom"
    refused = await client.call_tool("explain_error", {"text": ""})
    assert refused.is_error


async def test_each_argument_of_a_prompt_says_what_it_is(client: Client) -> None:
    prompts = (await client.list_prompts()).prompts
    assert prompts
    assert all(argument.description for prompt in prompts for argument in prompt.arguments or [])
