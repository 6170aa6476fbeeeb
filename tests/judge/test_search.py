"""Search answers questions as users put them, in the order of how well an entry fits."""

from __future__ import annotations

import pytest

from mldebug_mcp import InputError, search_folklore
from mldebug_mcp.judge.search import Kind
from mldebug_mcp.knowledge import catalogue
from mldebug_mcp.models import EntryHit, QuoteHit


def ids(query: str, kind: Kind = "any", limit: int = 5) -> list[str]:
    answer = search_folklore(query, kind=kind, limit=limit)
    hits: list[QuoteHit | EntryHit] = [*answer.quotes, *answer.entries]
    return [hit.id for hit in sorted(hits, key=lambda hit: -hit.score)][:limit]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("loss blew up", "loss_divergence"),
        ("my loss exploded", "menu_loss_spiked"),
        ("the loss went to NaN", "menu_nan"),
        ("stuck on a plateau", "loss_plateau"),
        ("the model does not learn anything", "menu_not_learning"),
        ("CUDA out of memory", "menu_out_of_memory"),
        ("NCCL watchdog timeout", "nccl_watchdog"),
    ],
)
def test_the_words_of_the_field_lead_to_the_same_entries(query: str, expected: str) -> None:
    assert expected in ids(query, limit=8)


def test_a_vague_question_is_answered_with_general_quotes() -> None:
    known = catalogue().quotes
    vague = [known[one].generality for one in ids("my model is not learning", kind="quote")]
    assert sum(vague) / len(vague) < 2.7


def test_a_question_that_names_the_stack_is_answered_with_specific_quotes() -> None:
    known = catalogue().quotes
    named = [known[one].generality for one in ids("entropy collapse in GRPO with vLLM", kind="quote")]
    assert sum(named) / len(named) > 3


def test_special_domains_come_only_where_they_are_asked_for() -> None:
    known = catalogue().quotes
    assert all("diffusion" not in known[one].domains for one in ids("loss is flat", kind="quote"))
    assert any("diffusion" in known[one].domains for one in ids("blurry diffusion samples", kind="quote"))


def test_only_the_kind_that_is_asked_for_is_given() -> None:
    for kind in ("cause", "symptom", "error", "menu"):
        answer = search_folklore("loss spike out of memory", kind=kind)
        assert answer.quotes == []
        assert {hit.kind for hit in answer.entries} == {kind}


def test_topic_and_domain_filter_the_quotes() -> None:
    answer = search_folklore("training trouble reward", domain="rl", topic="reward", limit=20)
    known = catalogue().quotes
    assert answer.quotes
    assert all("rl" in known[hit.id].domains and "reward" in known[hit.id].topics for hit in answer.quotes)
    assert answer.entries == []


def test_the_same_question_has_the_same_answer() -> None:
    assert search_folklore("loss spikes after warmup") == search_folklore("loss spikes after warmup")


@pytest.mark.parametrize("limit", [1, 5, 20])
def test_an_answer_stays_within_about_fifteen_hundred_tokens(limit: int) -> None:
    answer = search_folklore("why does my loss spike and diverge in training", limit=limit)
    assert len(answer.to_json()) < 6_000
    assert len(answer.quotes) <= limit
    assert len(answer.entries) <= limit


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"query": ""}, "the query is empty"),
        ({"query": "?!"}, "the query is empty"),
        ({"query": "x", "domain": "cooking"}, "domain 'cooking' does not exist; use one of: diffusion"),
        ({"query": "x", "topic": "cooking"}, "topic 'cooking' does not exist"),
        ({"query": "x", "kind": "cooking"}, "kind 'cooking' does not exist"),
    ],
)
def test_a_question_that_cannot_be_asked_is_refused(arguments: dict[str, str], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        search_folklore(**arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "query", ['" OR *', "NEAR(a b)", "loss' --", "a" * 10_000, "\x00loss", "\ud800 loss", "the of and"]
)
def test_the_syntax_of_the_index_and_hostile_text_do_no_harm(query: str) -> None:
    answer = search_folklore(query)
    assert len(answer.quotes) <= 5
    assert answer.to_json().encode("utf-8")


@pytest.mark.parametrize(
    "query",
    [
        "how do I center a div in css",
        "what gpu should I buy for gaming",
        "install the docker engine on debian 12",
        "javascript promise in an infinite loop",
        "configuration of a mail server",
        "which train goes from Munich to Paris",
        "今天晚上吃什么",
        "Wie wird das Wetter morgen?",
        "weather tomorrow",
        "the recipe for a sourdough that will not rise",
        "my dog will not stop barking at night",
        "the sql query of my shop is slow",
    ],
)
def test_a_question_of_another_field_is_answered_with_nothing_and_says_so(query: str) -> None:
    answer = search_folklore(query)
    assert answer.quotes == []
    assert answer.entries == []
    assert answer.notes[0].startswith("nothing here answers this")


def test_an_answer_to_a_part_of_the_question_says_which_words_it_leaves_out() -> None:
    answer = search_folklore("loss plateau with the frobnicator")
    assert answer.quotes
    assert answer.notes == ["nothing here speaks of: frobnicator"]


@pytest.mark.parametrize(
    ("query", "like"),
    [
        ("loss jumps after loading the ckpt", "loss jumps after loading the checkpoint"),
        ("grad norm explodes", "gnorm explodes"),
        ("gradient acumulation changes the loss", "gradient accumulation changes the loss"),
        ("overfiting on a tiny dataset", "overfitting on a tiny dataset"),
        ("NaN\u2019s in fp16", "NaN's in fp16"),
        ("the rewrad is always zero", "the reward is always zero"),
        ("loss plateau after 40B tokens and 100k steps", "loss plateau after tokens and steps"),
        ("loss plateau of Qwen3 and a resnet50 on an A6000", "loss plateau"),
        ("OutOfMemoryError in the first step", "out of memory error in the first step"),
    ],
)
def test_slips_and_short_forms_find_what_the_full_words_find(query: str, like: str) -> None:
    assert ids(query)[:3] == ids(like)[:3]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("Die Lernrate ist zu hoch", "lr_too_high"),
        ("Das Training hängt auf mehreren GPUs", "hang"),
        ("Validierungsverlust steigt, Trainingsverlust sinkt", "overfitting"),
        ("显存不足", "menu_out_of_memory"),
        ("学习率太大", "lr_too_high"),
        ("grpo训练奖励一直为0", "axolotl_reward_standalone"),
    ],
)
def test_questions_in_german_and_chinese_lead_to_the_same_entries(query: str, expected: str) -> None:
    assert expected in ids(query, limit=8)


def test_a_word_of_the_field_inside_another_word_is_not_taken_for_it() -> None:
    # "ratio" in "generation", "hang" in "change", "stall" in "install", "rank" in "frank"
    assert "off_policy_staleness" not in ids("generation of text at each iteration", limit=20)
    assert "menu_it_hangs" not in ids("change the learning rate", limit=20)
    assert "menu_not_learning" not in ids("installed wheels", limit=20)


@pytest.mark.parametrize(
    ("query", "expected", "contrary"),
    [
        ("eval loss is lower than train loss", "eval_below_train", "overfitting"),
        ("my train loss is higher than the val loss", "eval_below_train", "overfitting"),
        ("test accuracy above training accuracy", "eval_below_train", "overfitting"),
        ("val loss higher than train loss", "overfitting", "eval_below_train"),
        ("train loss lower than val loss", "overfitting", "eval_below_train"),
        ("validation accuracy much lower than train accuracy", "overfitting", "eval_below_train"),
    ],
)
def test_which_of_two_numbers_is_the_better_one_decides_what_is_found(query: str, expected: str, contrary: str) -> None:
    first = [hit.id for hit in search_folklore(query).entries[:4]]
    assert expected in first
    assert contrary not in first


@pytest.mark.parametrize(
    ("query", "cause"),
    [
        ("weights come out identical before and after the optimizer steps", "params_not_training"),
        ("the same pictures whatever noise goes into the generator", "adversarial_imbalance"),
        ("rollouts were made by an older version of the policy", "off_policy_staleness"),
    ],
)
def test_the_nearest_way_to_ask_finds_its_cause(query: str, cause: str) -> None:
    assert search_folklore(query).entries[0].id == cause


def test_a_cause_of_which_the_question_says_the_contrary_is_left_out() -> None:
    found = [hit.id for hit in search_folklore("reward accuracy far below 0.5 in the reward model").entries]
    assert "preference_labels_swapped" in found
    assert "no_preference_signal" not in found


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("all GPUs are busy and no new log line appears", "hang"),
        ("my agent gives the same response to every prompt", "entropy_collapse"),
        ("the job was preempted and carries on from where it was, but the numbers are far worse", "resume_state_lost"),
        ("numpy gives identical crops in every worker", "pytorch_worker_random"),
        ("which seed made our best of five runs so good, may I report it", "henderson_seeds_distributions"),
        ("the network only answers background, the mask is empty", "slavv_all_background"),
        ("accuracy of a two class model stays at 50 percent", "no_signal"),
    ],
)
def test_what_is_seen_leads_to_the_entry_without_the_name_of_the_trouble(query: str, expected: str) -> None:
    assert expected in ids(query)


def test_the_entry_that_covers_more_of_the_question_comes_first() -> None:
    assert ids("weight decay suppresses learning in LoRA", kind="quote")[0] == "axolotl_weight_decay_lora"
    assert ids("the chosen log probs decrease in DPO", kind="quote")[0] == "razin_preferred_decreases"


def test_where_only_the_conditions_leave_nothing_that_is_said() -> None:
    answer = search_folklore("padding side in generation", topic="oom")
    assert answer.quotes == []
    assert answer.notes[0].startswith("nothing of this kind, domain or topic")


def test_an_answer_says_where_sources_disagree_and_of_what_time_and_size_they_are() -> None:
    notes = search_folklore("are loss spikes caused by bad data").notes
    told = next(note for note in notes if note.startswith("sources disagree here"))
    assert "side by side" in told
    assert search_folklore("CUDA out of memory at the first step").notes == []


@pytest.mark.parametrize(
    ("query", "cause"),
    [
        ("KL to the reference model explodes in PPO", "kl_blowup"),
        ("chosen and rejected logps both fall in dpo", "dpo_collapse"),
        ("attention logits grow for a long time, then the loss diverges", "logit_drift"),
    ],
)
def test_sources_that_disagree_are_told_of_the_likeliest_cause(query: str, cause: str) -> None:
    told = next(note for note in search_folklore(query).notes if note.startswith("sources disagree here"))
    assert f"explain('{cause}')" in told


def test_a_quote_is_found_with_its_year_and_what_was_trained() -> None:
    quote = next(hit for hit in search_folklore("PaLM spikes bad data", limit=20).quotes if hit.id.startswith("palm"))
    assert (quote.year, quote.regime) == ("2022", "pretraining of language models, up to 540B parameters")


@pytest.mark.parametrize(
    ("query", "cause"),
    [
        ("weights do not change between epochs", "params_not_training"),
        ("loss is 2.302 on cifar10 and does not move", "no_signal"),
        ("val accuracy 99 % after one epoch", "train_eval_leakage"),
        ("garbage after export to gguf", "train_eval_mismatch"),
        ("sawtooth loss with group_by_length", "length_grouped_batches"),
        ("训练过程中内存占用持续上涨", "memory_leak"),
        ("loss does not converge", "lr_too_low"),
        ("its/s slowly declines over the day, no change in memory", "throughput_degradation"),
        ("loss 3.871 with 48 classes and it does not move", "no_signal"),
        ("first logged loss is 11.9 for a 32k vocabulary", "bad_init"),
        ("loss converges to 4.134 with 168 classes and won't get lower", "double_softmax"),
        ("gnerated text never stops, no eos tokn", "tokenizer_mismatch"),
    ],
)
def test_a_symptom_in_plain_words_leads_to_its_cause_among_the_first_three(query: str, cause: str) -> None:
    assert cause in ids(query, limit=3)


def test_a_message_in_the_question_is_the_first_error_found() -> None:
    errors = search_folklore("unet crashes: Assertion `t >= 0 && t < n_classes` failed with 3 classes").entries
    assert next(hit.id for hit in errors if hit.kind == "error") == "cuda_assert_label"
    assert errors[0].id == "labels_out_of_range"


@pytest.mark.parametrize(
    "query",
    [
        "how to convert a pdf to word",
        "best pizza recipe",
        "train to Berlin",
        "how do I rename many files in bash",
        "keyboard key is stuck",
        "wifi drops every ten minutes",
    ],
)
def test_a_question_of_another_field_is_answered_with_nothing(query: str) -> None:
    answer = search_folklore(query)
    assert (answer.quotes, answer.entries) == ([], [])
