"""What texts of loops of one's own say of resumes, schedules, weights that sample, rows and answers."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from mldebug_mcp import RunDiagnosis, diagnose_run

NOISE = np.random.default_rng(12).normal(0, 1, 2000)


def facts(answer: RunDiagnosis) -> set[str]:
    return {fact.fact for fact in answer.sheet.facts}


def judged(folder: Path, *texts: str) -> RunDiagnosis:
    """Diagnose a folder of texts, the first of them `a.log`."""
    for name, text in zip("abc", texts, strict=False):
        (folder / f"{name}.log").write_text(text)
    return diagnose_run(folder if len(texts) > 1 else folder / "a.log")


def level(step: float, of: int = 0) -> float:
    return 1.6 + 2.4 * math.exp(-step / 300) + 0.02 * float(NOISE[int(step) + of])


STATE = [
    "it {step}/600 | nll {loss:.3f} | lr 3.0e-04 | rms(v) {state:.2e}",
    "step {step} loss={loss:.4f} v_rms={state:.3e} lr=3e-4",
    "{step}) train_loss {loss:.3f} adam.v {state:.4e}",
]


@pytest.mark.parametrize("line", STATE)
@pytest.mark.parametrize("lost", [True, False])
def test_averages_of_an_optimizer_that_begin_anew_at_a_resume_are_lost(line: str, lost: bool, tmp_path: Path) -> None:
    lines = []
    for step in range(10, 610, 10):
        if step == 310:
            lines.append("Resuming training from step 300")
        state = 2e-3 * (1 - math.exp(-(step - 300) / 400)) if lost and step > 300 else 2e-3 * (1 + step / 60_000)
        lines.append(line.format(step=step, loss=level(step), state=state))
    answer = judged(tmp_path, "\n".join(lines))
    assert ("state_begins_anew" in facts(answer)) is lost
    assert (answer.hypotheses[0].cause == "resume_state_lost") is lost


ROWS = [
    ("t={step:04d} nll={loss:.3f} docs=[{first}..{last}]", "restored {{model, adam, t={step:04d}}}; 200 t left"),
    ("step {step} | loss {loss:.3f} | rows {first}..{last}", "continuing at step {step} from ckpt.pt"),
    ("it {step} loss {loss:.3f} samples=[{first}-{last}]", "re-loaded weights and optimizer, it {step}"),
]


@pytest.mark.parametrize(("line", "resume"), ROWS)
@pytest.mark.parametrize("replayed", [True, False])
def test_ranges_of_rows_that_begin_anew_behind_a_resume_are_replayed(
    line: str, resume: str, replayed: bool, tmp_path: Path
) -> None:
    lines = []
    for step in range(10, 410, 10):
        if step == 210:
            lines.append(resume.format(step=200))
        first = 10 * ((step - 200 if replayed and step > 200 else step) - 10)
        lines.append(line.format(step=step, loss=level(step), first=first, last=first + 99))
    answer = judged(tmp_path, "\n".join(lines))
    assert ("rows_after_resume" in facts(answer)) is replayed
    assert (answer.hypotheses[0].cause == "resume_data_replayed") is replayed


@pytest.mark.parametrize(("floor_from", "stages", "stated"), [
    (80, False, True), (100, False, True), (300, False, False), (80, True, False),
])  # fmt: skip
def test_a_rate_that_rests_at_its_floor_for_most_of_the_run_is_on_a_schedule_that_is_too_short(
    floor_from: int, stages: bool, stated: bool, tmp_path: Path
) -> None:
    lines = []
    for step in range(20, 340, 20):
        way = min(1.0, step / floor_from)
        way = float(way >= 1) if stages else way
        rate = 2e-5 + 1e-3 * (1 + math.cos(math.pi * way))
        lines.append(f"step {step} loss {level(step):.4f} lr {rate:.3g} grad_norm {0.5 + 0.02 * NOISE[step]:.3f}")
    answer = judged(tmp_path, "\n".join(lines))
    assert ("rate_rests_early" in facts(answer)) is stated
    assert (answer.hypotheses[0].cause == "lr_schedule_bug") is stated


@pytest.mark.parametrize("served", [
    "served 320 completions, v{version}, mean reward {reward:.3f}, H {entropy:.3f}",
    "batch of 320 | v {version} | reward {reward:.3f} | entropy {entropy:.3f}",
    "out: 320, version {version}, reward {reward:.3f}, entropy {entropy:.3f}",
])  # fmt: skip
@pytest.mark.parametrize("stuck", [True, False])
def test_weights_that_a_sampler_no_longer_fetches_are_too_old(served: str, stuck: bool, tmp_path: Path) -> None:
    learner, sampler = [], []
    for step in range(5, 155, 5):
        reward = 0.45 + 0.1 * float(NOISE[step])
        is_old = stuck and step > 50
        off = (0.3 + 0.05 * float(NOISE[step + 300])) if is_old else 0.0
        learner.append(
            f"v{step} r={reward:.3f} ratio[min/mean/max]={1 - off:.3f}/1.000/{1 + 9 * off:.2f} outside={off:.3f} g=2.1"
        )
        version = 50 if is_old else step
        sampler.append(served.format(version=version, reward=reward, entropy=0.6 + 0.02 * float(NOISE[step + 500])))
    answer = judged(tmp_path, "\n".join(learner), "\n".join(sampler))
    assert ("old_samples_far_off" in facts(answer)) is stuck
    assert (answer.hypotheses[0].cause == "off_policy_staleness") is stuck


HEADS = [
    " rows/update ..... 16\n user side ....... 40.0 tok (mean)\n bot side ........ 12.0 tok (mean)\n",
    "[data] mean prompt 40.0, mean answer 12.0; 16 rows per update\n",
    "average tokens: question 40.0 | reply 12.0 | 16 examples/step\n",
]


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize(("of_row", "stated"), [(51.0, True), (12.0, False)])
def test_as_many_tokens_as_both_sides_have_are_no_answers_alone(
    head: str, of_row: float, stated: bool, tmp_path: Path
) -> None:
    lines = [
        f"upd {step} loss {level(step):.4f} counted_tok {int(16 * of_row * step):,}" for step in range(15, 315, 15)
    ]
    answer = judged(tmp_path, head + "\n".join(lines))
    assert ("both_sides_count" in facts(answer)) is stated
    assert (answer.hypotheses[0].cause == "prompt_not_masked") is stated


@pytest.mark.parametrize(("head", "counts", "stated"), [
    ("", " | label tok {total} | reply tok {reply}", True),
    ("question 60 tok, reply 7 tok, 18 rows per step", " | tokens in loss 1,188", True),
    ("", " n_counted_tokens=1188 n_answer_tokens=126 n_tokens=1206", True),
    ("", " | label tok {reply} | reply tok {reply}", False),
    ("question 60 tok, reply 7 tok, 18 rows per step", " | tokens in loss 126", False),
])  # fmt: skip
def test_far_more_tokens_than_answers_have_count_prompts(head: str, counts: str, stated: bool, tmp_path: Path) -> None:
    lines = [
        f"step {step:4d} | loss {level(step):.4f}" + counts.format(total=step * 1188, reply=step * 126)
        for step in range(15, 315, 15)
    ]
    answer = judged(tmp_path, "\n".join([head, *lines]))
    assert ("both_sides_count" in facts(answer)) is stated
    assert (answer.hypotheses[0].cause == "prompt_not_masked") is stated


TEXT = (
    "the model reads a page of the book and says what comes next in it so that the reader may learn how words follow "
    "each other in the language of the people who wrote these pages for all the others in the town by the sea "
) * 3
RANDOM_TEXT = "".join("etaoin shrdlu cmfw"[int(abs(value) * 7919) % 18] for value in NOISE[:400])


@pytest.mark.parametrize(("written", "stated"), [
    (TEXT[::2], True), (f"{TEXT[1:140:2]}\\n{TEXT[160:300:2]}", True), (TEXT, False), (RANDOM_TEXT, False),
])  # fmt: skip
@pytest.mark.parametrize("line", ["  sample: {}", "   | 'the {}'", "  > so it |{}"])
def test_samples_of_every_other_letter_are_of_a_target_two_places_on(
    written: str, stated: bool, line: str, tmp_path: Path
) -> None:
    lines = ["characters, 57 of them"]
    for step in range(20, 420, 20):
        lines.append(f"upd {step}  nll {level(step):.3f}  nll_dev {level(step, 900) + 0.05:.3f}")
        lines += [line.format(written[at : at + 90]) for at in (0, 31)] if step % 100 == 0 else []
    answer = judged(tmp_path, "\n".join(lines))
    assert ("skips_letters" in facts(answer)) is stated
    assert (answer.hypotheses[0].cause == "label_shift_error") is stated


@pytest.mark.parametrize("line", ["   {set}: acc {share:.3f}", "   on {set} pairs acc {share:.3f} of 200"])
@pytest.mark.parametrize(("set_name", "wrong", "stated"), [
    ("raters", True, True), ("gold", True, True), ("raters", False, False),
])  # fmt: skip
def test_pairs_of_people_that_come_out_the_wrong_way_contradict_training(
    line: str, set_name: str, wrong: bool, stated: bool, tmp_path: Path
) -> None:
    lines = ["dpo, beta 0.1"]
    for at in range(1, 15):
        right = 0.93 - 0.45 * math.exp(-at / 4)
        lines.append(
            f"step {25 * at}: loss {0.4 + 0.29 * math.exp(-at / 4):.4f} acc {right:.3f} margin {0.11 * at:.3f}"
        )
        share = 1 - right if wrong else right - 0.05
        lines += [line.format(set=set_name, share=share)] if at % 3 == 0 else []
    answer = judged(tmp_path, "\n".join(lines))
    assert ("source_contradicts" in facts(answer)) is stated
    assert (answer.hypotheses[0].cause == "preference_labels_swapped") is stated


@pytest.mark.parametrize("line", [
    "judge_score={grade:.2f}", "rubric {grade:.2f}", "lexicon score of policy samples {below:.3f}",
])  # fmt: skip
@pytest.mark.parametrize(("to", "stated"), [(2.1, True), (6.6, False)])
def test_grades_of_what_is_written_that_fall_while_pairs_are_learnt_show_swapped_pairs(
    line: str, to: float, stated: bool, tmp_path: Path
) -> None:
    lines = ["dpo, beta 0.1, 32 pairs a step"]
    for at in range(1, 13):
        right, grade = 0.95 - 0.45 * math.exp(-at / 3), to + (6.1 - to) * math.exp(-at / 4)
        lines.append(
            f"step {30 * at} loss {0.25 + 0.4 * math.exp(-at / 4):.4f} rewards/accuracies {right:.3f} "
            f"rewards/margins {0.2 * at:.3f} | " + line.format(grade=grade, below=grade - 6.8)
        )
    answer = judged(tmp_path, "\n".join(lines))
    assert ("grades_fall_with_pairs" in facts(answer)) is stated
    assert (answer.hypotheses[0].cause == "preference_labels_swapped") is stated


ENDS = [
    "[chat.sft:evaluate] step={step} stopped={right}/6 new_tokens=[40, 12, 9] last=' red.</s>[INST] what'",
    "eval step {step} | ended {share:.2f}",
    "[eval] step {step}: eos_share {share:.2f}",
]


@pytest.mark.parametrize("line", ENDS)
@pytest.mark.parametrize("ends", [False, True])
def test_answers_that_no_longer_end_have_an_end_that_was_not_trained(line: str, ends: bool, tmp_path: Path) -> None:
    lines = []
    for step in range(0, 210, 10):
        if step:
            lines.append(f"[chat.sft:main] step={step} loss={0.2 + 2.2 * math.exp(-step / 50):.4f}")
        if step % 50 == 0:
            right = 6 if ends else max(0, 6 - step // 15)
            lines.append(line.format(step=step, right=right, share=right / 6))
    answer = judged(tmp_path, "\n".join(lines))
    assert ("answers_no_longer_end" in facts(answer)) is not ends
    assert (answer.hypotheses[0].cause == "tokenizer_mismatch") is not ends


@pytest.mark.parametrize("different", [
    "uniq   16 of 128", "unique_answers = 0.125", "distinct: 16/128",
])  # fmt: skip
@pytest.mark.parametrize("alike", [True, False])
def test_answers_that_are_copies_have_no_variance(different: str, alike: bool, tmp_path: Path) -> None:
    lines = []
    for step in range(5, 155, 5):
        norm = 0.0 if alike else 1.2 + 0.2 * float(NOISE[step])
        reward = 0.25 + 0.1 * float(NOISE[step + 100])
        lines += [f"iter {step}", f"  reward {reward:.3f} +- 0.4 over 128", "  entropy 0.9", f"  {different}"]
        lines += [f"  |g|    {norm:.5f}"]
    answer = judged(tmp_path, "\n".join(lines))
    assert ("answers_alike" in facts(answer)) is alike
    assert (answer.hypotheses[0].cause == "no_reward_variance") is alike


def _rising(step: int) -> float:
    return 4.4 + 2.4 * (1 - math.exp(-step / 100))


def _falling(step: int) -> float:
    return 0.9 + 3.5 * math.exp(-step / 60)


@pytest.mark.parametrize("name", ["scorer", "next_char_nll", "standalone_scorer"])
@pytest.mark.parametrize(("course", "stated"), [(_rising, True), (_falling, False)])
def test_a_score_of_the_next_token_that_rises_while_both_losses_fall_asks_for_something_else(
    name: str, course: Callable[[int], float], stated: bool
) -> None:
    records = []
    for step in range(0, 420, 20):
        record = {"step": step, "loss": _falling(step)}
        if step % 100 == 0:
            record |= {"eval_loss": _falling(step) + 0.01, name: course(step)}
        records.append(record)
    answer = diagnose_run(records, settings={"vocab_size": 82})
    assert ("scored_apart" in facts(answer)) is stated
    assert (answer.hypotheses[0].cause == "label_shift_error") is stated
