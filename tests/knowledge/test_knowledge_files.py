"""The knowledge files agree with each other, and would be caught if they did not."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from benchmarks.faults.counts import with_counts, write_links
from benchmarks.faults.relations import counted, table, write

from mldebug_mcp.core.errors import CatalogueError
from mldebug_mcp.core.paths import knowledge_folder
from mldebug_mcp.judge.search import indexed
from mldebug_mcp.knowledge import catalogue
from mldebug_mcp.knowledge.catalogue import FOLDER, Link, Relation, counts, read_links, read_relations
from mldebug_mcp.knowledge.playbook import parse_blocks, read_catalogue
from mldebug_mcp.knowledge.search_index import asked
from mldebug_mcp.knowledge.verification import documents, problems

ROOT = knowledge_folder()


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Return a copy of the knowledge files that a test may break."""
    for name in ("SKILL.md", "PLAYBOOK.md"):
        shutil.copy(ROOT / name, tmp_path / name)
    for name in ("references", "evidence"):
        shutil.copytree(ROOT / name, tmp_path / name)
    return tmp_path


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    """Return a copy of the tables that a test may break."""
    for path in FOLDER.glob("*.csv"):
        shutil.copy(path, tmp_path / path.name)
    return tmp_path


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count(old) >= 1
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def found(folder: Path) -> str:
    return "\n".join(problems(folder, read_catalogue(folder)))


def test_the_files_that_ship_agree_with_each_other() -> None:
    assert list(problems(ROOT, catalogue())) == []


@pytest.mark.parametrize("document", documents(ROOT), ids=lambda path: path.name)
def test_one_changed_character_of_any_quote_is_noticed(document: Path, copy: Path) -> None:
    quotes = [block for block in parse_blocks(document.read_text(encoding="utf-8")) if block.kind == "quote"]
    for quote in quotes[:3]:
        words = quote.text.split("\n")[0]
        target = copy / document.relative_to(ROOT)
        change(target, words, words.replace("e", "x", 1))
        assert "not the words of" in found(copy)
        shutil.copy(document, target)


def test_one_changed_character_of_a_record_is_noticed(copy: Path) -> None:
    change(copy / "evidence" / "bloom_lessons.md", "shift elsewhere", "shift elsewhen")
    assert "bloom_seed_change_failed: the digest does not fit the text" in found(copy)


def test_a_quote_without_its_record_is_noticed(copy: Path) -> None:
    change(
        copy / "SKILL.md", "evidence/karpathy_recipe.md#karpathy_recipe_fails_silently", "evidence/nobody.md#nothing"
    )
    assert "no record holds nobody.md#nothing" in found(copy)


def test_a_cause_without_a_citation_of_its_main_claim_is_noticed(copy: Path) -> None:
    change(
        copy / "PLAYBOOK.md",
        "([Axolotl](evidence/axolotl_stability.md#axolotl_spike_one_sample)).\n\n**Shows",
        ".\n\n**Shows",
    )
    assert "bad_batch: the main claim has no citation" in found(copy)


def test_a_citation_that_resolves_nowhere_stops_the_catalogue(copy: Path) -> None:
    change(copy / "PLAYBOOK.md", "bekman_mle.md#bekman_bad_data_pocket", "bekman_mle.md#bekman_no_such_quote")
    with pytest.raises(CatalogueError, match="bekman_no_such_quote, which no record holds"):
        read_catalogue(copy)


def test_every_cause_of_the_playbook_has_effects_and_steps_of_its_own() -> None:
    for cause in catalogue().causes.values():
        assert cause.next_steps
        assert cause.effects or cause.id == "healthy"


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ("bad_batch,loss_spike,often,\n", "has 6 cells, not 4"),
        ("bad_batch,loss_spike,mostly,,,\n", "'mostly' does not say how often"),
        ("bad_batch,loss_spike,,,,\n", "give a word for how often, or counts"),
        ("bad_batch,loss_spike,often,,three,4\n", "seen and runs are numbers"),
        ("bad_batch,,often,,3,4\n", "the cause or the outcome is missing"),
        ("bad_batch,loss_spike,often,,3,4\nbad_batch,loss_spike,often,,3,4\n", "are linked twice"),
        ("no_cause,loss_spike,often,,3,4\n", "no_cause has no page"),
        ("bad_batch,loss_spike,often,no_quote,3,4\n", "cite no_quote, which no record holds"),
    ],
)
def test_a_row_of_the_links_that_breaks_their_form_is_named(row: str, problem: str, tables: Path) -> None:
    (tables / "links.csv").write_text(f"cause,outcome,word,quotes,seen,runs\n{row}", encoding="utf-8")
    with pytest.raises(CatalogueError, match=rf"links\.csv:[123]: .*{problem}"):
        read_catalogue(ROOT, tables)


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ("bad_batch,a bad batch,,15\n", "has 13 cells, not 4"),
        ("bad_batch,,,15,,,,,,,,,\n", "say in `name` what it is called"),
        ("bad_batch,a bad batch,,many,,,,,,,,,\n", "runs of 1000 are numbers"),
        ("bad_batch,a bad batch,,,20,,,,,,,,\n", "`any` is needed"),
        ("bad_batch,a bad batch,,0,,,,,,,,,\n", "all numbers are above 0"),
        ("no_cause,no cause,,15,,,,,,,,,\n", "no_cause has no page"),
        ("bad_batch,a bad batch,ghost,15,,,,,,,,,\n", "ghost has no page"),
    ],
)
def test_a_row_of_the_causes_that_breaks_their_form_is_named(row: str, problem: str, tables: Path) -> None:
    head = (FOLDER / "causes.csv").read_text(encoding="utf-8").splitlines()[0]
    (tables / "causes.csv").write_text(f"{head}\n{row}", encoding="utf-8")
    with pytest.raises(CatalogueError, match=rf"causes\.csv:2: .*{problem}"):
        read_catalogue(ROOT, tables)


def test_a_cause_without_a_row_of_its_own_is_a_rare_one(tables: Path) -> None:
    head = (FOLDER / "causes.csv").read_text(encoding="utf-8").splitlines()[0]
    (tables / "causes.csv").write_text(f"{head}\n", encoding="utf-8")
    known = read_catalogue(ROOT, tables)
    assert (known.prior("bad_batch", "sft"), known.causes["bad_batch"].mistaken_for) == (2.0, ())


def test_counts_are_written_beside_words_and_quotes_that_stay(tmp_path: Path) -> None:
    links = read_links()
    write_links(with_counts(links, counts(links)), tmp_path)
    assert read_links(tmp_path) == links
    write_links(with_counts(links, {"bad_batch": {"loss_spike": (1, 2), "reward_zero": (0.5, 3)}}), tmp_path)
    found = read_links(tmp_path)
    assert Link("bad_batch", "loss_spike", "always", ("axolotl_spike_one_sample",), (1, 2)) in found
    assert Link("bad_batch", "reward_zero", "", (), (0.5, 3)) in found
    assert [link.outcome for link in found if link.counted] == ["loss_spike", "reward_zero"]


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ("frozen,overfitting,3\n", "has 5 cells, not 3"),
        (",overfitting,3,1,2\n", "one is missing"),
        ("frozen,overfitting,3,1,2\nfrozen,overfitting,4,1,2\n", "there twice"),
        ("frozen,overfitting,much,1,2\n", "bits, seen and runs are numbers"),
    ],
)
def test_a_row_of_the_relations_that_breaks_their_form_is_named(row: str, problem: str, tmp_path: Path) -> None:
    (tmp_path / "relations.csv").write_text(f"fact,cause,bits,seen,runs\n{row}", encoding="utf-8")
    with pytest.raises(CatalogueError, match=rf"relations\.csv:[23]: .*{problem}"):
        read_relations(tmp_path)


def test_facts_that_weigh_are_yielded_and_tell_of_causes_that_are_known() -> None:
    relations = read_relations()
    code = "".join(file.read_text(encoding="utf-8") for file in (FOLDER.parent / "judge" / "columns").glob("*.py"))
    for relation in relations:
        assert f'"{relation.fact}"' in code
        assert relation.cause in catalogue().causes
        assert abs(relation.bits) <= 14, "more than all other evidence of a run together"
        assert relation.seen <= relation.runs


def test_a_fact_that_accuses_is_shown_by_hardly_any_healthy_run() -> None:
    relations = read_relations()
    healthy = {relation.fact: relation for relation in relations if relation.cause == "healthy"}
    for relation in relations:
        if relation.bits > 0 and relation.cause != "healthy":
            assert healthy[relation.fact].seen <= 1, relation.fact


def test_relations_are_counted_anew_with_the_bits_that_they_have(tmp_path: Path) -> None:
    relations = [Relation("frozen", "metric_bug", 2.5, 9, 9), Relation("frozen", "healthy", 0.0, 9, 9)]
    shown = [("metric_bug", frozenset({"frozen"})), ("metric_bug", frozenset()), ("healthy", frozenset({"norm_grows"}))]
    write(counted(relations, shown), tmp_path)
    assert read_relations(tmp_path) == [
        Relation("frozen", "metric_bug", 2.5, 1, 2), Relation("frozen", "healthy", 0.0, 0, 1)
    ]  # fmt: skip
    assert table(relations, shown).splitlines() == ["frozen: metric_bug 1", "norm_grows: healthy 1"]


def test_every_source_is_quoted_and_every_quote_has_a_generality() -> None:
    known = catalogue()
    assert {quote.source.id for quote in known.quotes.values()} == set(known.sources)
    assert len(known.sources) >= 120
    assert len(known.quotes) >= 400


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("- locator: Patience\n", "", "locator: field required"),
        ("- locator: Patience\n", "- locator:\n", "locator: string should have at least 1 character"),
        ("- grade: primary", "- grade: heard of", "grade: input should be 'primary', 'compared'"),
    ],
)
def test_a_quote_without_a_locator_or_a_grade_that_exists_is_refused(
    old: str, new: str, problem: str, copy: Path
) -> None:
    change(copy / "evidence" / "bloom_lessons.md", old, new)
    with pytest.raises(CatalogueError, match=problem):
        read_catalogue(copy)


def test_every_disagreement_sets_at_least_two_dated_sources_side_by_side() -> None:
    known = catalogue()
    for cause in known.causes.values():
        sides = known.sides(cause)
        years = [side.source.year for side in sides]
        assert years == sorted(years)
        if cause.disagreement:
            assert len({side.source.id for side in sides}) > 1, cause.id
            assert all(year.isdigit() for year in years), cause.id


SITUATIONS = {
    "menu_loss_spiked", "menu_nan", "menu_not_learning", "menu_train_good_eval_bad", "menu_reward_does_not_move",
    "menu_out_of_memory", "menu_it_hangs", "menu_slow", "menu_resumed_and_worse", "menu_good_numbers_not_believed",
}  # fmt: skip


def test_menus_lead_to_every_cause() -> None:
    known = catalogue()
    assert set(known.menus) >= SITUATIONS
    assert {cause for menu in known.menus.values() for cause in menu.causes} >= set(known.causes)
    assert all(menu.first and menu.quotes for menu in known.menus.values())


def test_each_menu_has_three_hypotheses_healthy_and_unknown_among_them() -> None:
    for menu in catalogue().menus.values():
        assert {"healthy", "unknown"} < set(menu.causes), menu.id
        assert len(menu.causes) >= 3, menu.id


def test_the_playbook_is_short_enough_to_be_read() -> None:
    text = (ROOT / "PLAYBOOK.md").read_text(encoding="utf-8")
    size = len(text.encode())
    assert size <= 90_000, f"{size - 90_000} bytes too many: move what a reader needs later to references/causes.md"
    assert "guess" not in text


@pytest.mark.parametrize(
    ("file", "old", "new", "problem"),
    [
        ("PLAYBOOK.md", "**Fix:** Drop or repair", "Drop or repair", "bad_batch: `**Fix:**` is missing"),
        ("PLAYBOOK.md", "**Shows:** one spike", "**Shown:** one spike", r"`\*\*Shown:\*\*` is not expected here"),
        ("PLAYBOOK.md", "Confirms: both runs", "Shows: both runs", "bad_batch: a check is `ACTION"),
        ("PLAYBOOK.md", "One batch is malformed", "**Shows:** One batch", "is not expected here; allowed once are"),
        ("references/causes.md", "## bad_batch", "## no_batch", "no_batch has no page in PLAYBOOK.md"),
        ("references/causes.md", "image features. (minutes)", "image features.", "bad_batch: a check is `ACTION"),
        (
            "references/causes.md",
            "2. Save the batch",
            "- Save the batch",
            "bad_batch: the checks are one numbered list",
        ),
        ("references/causes.md", "idefics_instant_spike_recovers", "no_quote", "bad_batch cites no_quote"),
    ],
)
def test_a_page_that_breaks_the_grammar_is_named_with_its_line(
    copy: Path, file: str, old: str, new: str, problem: str
) -> None:
    change(copy / file, old, new)
    pattern = problem.replace("**Fix:**", r"\*\*Fix:\*\*")
    with pytest.raises(CatalogueError, match=rf"^{file}:[1-9]\d+: .*{pattern}"):
        read_catalogue(copy)


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("**First:** look at the steps before", "Look at the steps before", "a menu is a paragraph"),
        ("- in the first steps or as", "- in the first steps, as", ""),
        ("one jump that recovers: bad", "one jump that recovers bad", "an item of a menu is"),
        ("one node only: hardware_fault", "one node only: ghost", "names ghost, which has no"),
    ],
)
def test_a_menu_that_breaks_the_grammar_is_named(copy: Path, old: str, new: str, problem: str) -> None:
    change(copy / "PLAYBOOK.md", old, new)
    if not problem:
        assert read_catalogue(copy).menus["menu_loss_spiked"].items
        return
    with pytest.raises(CatalogueError, match=problem):
        read_catalogue(copy)


# The skill


def frontmatter() -> dict[str, object]:
    import yaml

    loaded: dict[str, object] = yaml.safe_load((ROOT / "SKILL.md").read_text(encoding="utf-8").split("---\n", 2)[1])
    return loaded


def test_the_skill_keeps_to_the_open_specification() -> None:
    fields = frontmatter()
    assert set(fields) <= {"name", "description", "license", "compatibility", "metadata", "allowed-tools"}
    assert fields["name"] == "mldebug"
    assert 0 < len(str(fields["description"])) <= 1024
    assert len(str(fields.get("compatibility", ""))) <= 500


def test_the_skill_is_short_enough_to_be_loaded_whole() -> None:
    body = (ROOT / "SKILL.md").read_text(encoding="utf-8").split("---\n", 2)[2]
    assert body.count("\n") < 500
    # 3.5 characters per token is what such text takes.
    assert len(body) / 3.5 < 5_000


def test_the_reference_implementation_of_the_specification_accepts_the_skill(copy: Path) -> None:
    validator = pytest.importorskip("skills_ref.validator")
    shutil.copytree(copy, copy / "mldebug", ignore=shutil.ignore_patterns("mldebug"))
    assert validator.validate(copy / "mldebug") == []


def test_questions_of_the_search_benchmark_name_ids_that_exist() -> None:
    from mldebug_mcp.checks import symptoms
    from mldebug_mcp.knowledge.errors import known_errors

    known = catalogue()
    ids = {*known.quotes, *known.causes, *known.menus, *known_errors(), *symptoms()}
    lines = (Path(__file__).parents[2] / "benchmarks" / "search" / "questions.jsonl").read_text().splitlines()
    assert len(lines) >= 150
    for line in lines:
        assert set(json.loads(line)["right"]) & ids


def test_how_people_ask_is_told_for_each_situation_and_cause_and_for_nothing_that_does_not_exist() -> None:
    known = catalogue()
    tags = {tag for one in indexed() for tag in (*one.tags, one.id)}
    told = set(asked())
    assert told <= tags
    assert {situation for quote in known.quotes.values() for situation in quote.situations} <= told
    assert set(known.causes) - {"unknown"} <= told
