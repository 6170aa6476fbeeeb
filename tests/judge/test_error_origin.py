"""The same words mean another error in another component, process or device: frames and prefixes decide."""

from __future__ import annotations

import pytest

from mldebug_mcp.judge.explain_error import explain_error

SIZES = (
    "RuntimeError: The size of tensor a (18959) must match the size of tensor b (19471) at non-singleton dimension 0"
)
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
INVALID = "RuntimeError: CUDA error: invalid argument"


LIBRARY = "/opt/venv/lib/python3.12/site-packages/lib/config.py"

SIZE = "RuntimeError: shape '[3, 3]' is invalid for input of size 12"
EXPANDED = (
    "RuntimeError: The expanded size of the tensor (90) must match the existing size (64) at non-singleton "
    "dimension 1.  Target sizes: [1, 90].  Tensor sizes: [1, 64]"
)
NO_TENSOR = "TypeError: expected Tensor as element 1 in argument 0, but got NoneType"
NO_NORM = "AttributeError: 'NoneType' object has no attribute 'norm'"


def traceback(error: str, *frames: str, code: str = "work()") -> str:
    """Return a traceback through these frames, each a file and a function, with the last one's code."""
    named = [frame.split() for frame in frames]
    codes = ["work()"] * (len(frames) - 1) + [code]
    lines = [
        f'  File "{file}", line 12, in {function}\n    {shown}'
        for (file, function), shown in zip(named, codes, strict=True)
    ]
    return "\n".join(["Traceback (most recent call last):", *lines, error])


def first_id(text: str) -> str:
    return explain_error(text).matches[0].id


def test_sizes_that_differ_while_a_checkpoint_is_loaded_are_the_checkpoints() -> None:
    assert first_id(traceback(SIZES, "train.py main", "torch/nn/modules/module.py load_state_dict")) == (
        "checkpoint_tensor_shape"
    )


def test_sizes_that_differ_in_a_forward_pass_are_not_the_checkpoints() -> None:
    assert first_id(traceback(SIZES, "train.py main", "model.py forward")) == "size_tensor_match"
    assert first_id(SIZES) == "size_tensor_match"


def test_an_invalid_argument_is_of_pinning_where_the_frames_show_it() -> None:
    pinning = traceback(INVALID, "torch/utils/data/_utils/pin_memory.py pin_memory")
    assert first_id(pinning) == "pin_memory_invalid_argument"
    assert first_id(traceback(INVALID, "model.py forward")) == "cuda_invalid_value"


@pytest.mark.parametrize("prefix", ["(EngineCore_DP0 pid=4242) ", "(VllmWorker rank=0 pid=812) "])
def test_memory_that_ran_out_in_the_engine_is_not_the_trainers(prefix: str) -> None:
    log = traceback(OOM, "/opt/lib/python3.12/site-packages/vllm/v1/worker/gpu_worker.py load_model")
    assert first_id("\n".join(prefix + line for line in log.splitlines())) == "vllm_out_of_memory"
    assert first_id(prefix + OOM) == "vllm_out_of_memory"


def test_memory_that_ran_out_in_the_trainer_is_not_the_engines() -> None:
    assert first_id(traceback(OOM, "train.py main")) == "cuda_oom"


def test_the_advice_is_for_the_device_that_the_message_names() -> None:
    tpu = explain_error("XlaRuntimeError: RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm.")
    assert tpu.matches[0].id == "tpu_oom"
    gpu = explain_error("XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 8589934592 bytes.")
    assert gpu.matches[0].id == "jax_oom"


def test_workers_killed_for_memory_are_the_first_error_of_rays_log() -> None:
    answer = explain_error(
        "(raylet) node_manager.cc:3287: 2 Workers (tasks / actors) killed due to memory pressure (OOM), 0 Workers "
        "crashed due to other reasons at node (ID: 7ca3d7ae)\n"
        "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.\n"
    )
    assert answer.error is not None
    assert answer.error.line == 1
    assert answer.matches[0].id == "ray_memory_pressure"
    assert not any("echoes a failure" in note for note in answer.notes)


@pytest.mark.parametrize(
    "text",
    [
        "RuntimeError: You're using `assistant_only_loss=True`, but at least one example has no assistant tokens.",
        "ValueError: The chat template is not training-compatible (missing prefix-preservation or `{% generation %}` "
        "markers) and patching is not supported for this template.",
    ],
)
def test_a_template_that_marks_no_answers_is_named_in_trls_words(text: str) -> None:
    assert first_id(text) == "assistant_mask_zero"


def test_shapes_of_a_checkpoint_are_not_its_names() -> None:
    shapes = explain_error(
        "RuntimeError: Error(s) in loading state_dict for Net: size mismatch for classifier.weight: copying a param "
        "with shape torch.Size([2, 768]) from checkpoint, the shape in current model is torch.Size([3, 768])."
    )
    assert [match.id for match in shapes.matches] == ["state_dict_shapes"]
    assert first_id("ValueError: You set `ignore_mismatched_sizes` to `False`, thus raising an error.") == (
        "state_dict_shapes"
    )
    names = 'RuntimeError: Error(s) in loading state_dict for Net:\n\tMissing key(s) in state_dict: "a.weight".'
    assert [match.id for match in explain_error(names).matches] == ["state_dict_keys"]


REFUSED = "ValueError: `temperature` (=0.0) has to be a strictly positive float."


def test_what_a_library_refuses_is_named_by_its_kind() -> None:
    refused = traceback(REFUSED, "train.py main", f"{LIBRARY} check", code="raise ValueError(message)")
    assert first_id(refused) == first_id(REFUSED) == "setting_out_of_range"


def test_what_the_users_own_code_refuses_is_no_librarys_message() -> None:
    own = traceback(REFUSED, "train.py main", "data.py check", code="raise ValueError(message)")
    assert explain_error(own).matches == []


def test_a_kind_of_message_is_named_where_no_more_special_row_fits() -> None:
    answer = explain_error(
        "ValueError: Mixed precision fp16 and bf16 cannot both be set; at most one of fp16 and bf16."
    )
    assert [match.id for match in answer.matches] == ["fp16_and_bf16"]


def test_a_checkpoint_without_its_end_is_told_from_another_invalid_argument() -> None:
    text = "OSError: [Errno 22] Invalid argument"
    reading = traceback(text, "torch/serialization.py __init__", code="super().__init__(torch._C.PyTorchFileReader(f))")
    assert first_id(reading) == "checkpoint_cut_in_half"
    assert "checkpoint_cut_in_half" not in [match.id for match in explain_error(text).matches]


def test_pasted_memory_numbers_are_handed_to_the_verb_that_judges_them() -> None:
    answer = explain_error("allocated: 12.00 GiB\nreserved: 20.00 GiB\n")
    assert answer.error is None
    assert answer.next_step is not None
    assert answer.next_step.tool == "check_memory"
    assert "12,884,901,888 bytes allocated" in answer.notes[0]


@pytest.mark.parametrize("prefix", ["", "[rank1]: "])
def test_a_group_of_exceptions_is_read_as_what_raised_it(prefix: str) -> None:
    group = [
        "  + Exception Group Traceback (most recent call last):",
        '  |   File "/job/train.py", line 14, in <module>',
        "  |     read(shards)",
        "  | ExceptionGroup: two shards (2 sub-exceptions)",
        "  +-+---------------- 1 ----------------",
        "    | Traceback (most recent call last):",
        '    |   File "/job/train.py", line 9, in read',
        "    | ValueError: shard 3 is empty",
        "    +---------------- 2 ----------------",
        "    | OSError: shard 4 is gone",
        "    +------------------------------------",
    ]

    error = explain_error("\n".join(["step 1 loss 2.1", *(prefix + line for line in group)])).error

    assert error is not None
    assert error.line == 5
    assert error.ranks == (["1"] if prefix else [])


def _raised_in(frame: str, code: str, message: str) -> str:
    file = f"/opt/venv/lib/python3.12/site-packages/{frame}"
    return f'Traceback (most recent call last):\n  File "{file}", line 9, in forward\n    {code}\n{message}\n'


@pytest.mark.parametrize(
    ("frame", "code", "message", "row"),
    [
        ("torchmetrics/functional/scores.py", "m = bins.reshape(k, k)", SIZE, "metric_class_count"),
        ("torch/nn/modules/flatten.py", "return x.reshape(n, 3, 32)", SIZE, "reshape_elements"),
        ("transformers/models/bert/modeling_bert.py", "ids = table.expand(b, n)", EXPANDED, "position_table_short"),
        ("mylib/mask.py", "mask = mask.expand(b, n)", EXPANDED, "size_tensor_match"),
        ("torch/utils/data/_utils/collate.py", "return torch.stack(batch, 0, out=out)", NO_TENSOR, "collate_item_none"),
        ("mylib/heads.py", "x = torch.cat([a, b])", NO_TENSOR, "must_be_tensor"),
        ("mylib/clip.py", "total += p.grad.norm() ** 2", NO_NORM, "gradient_is_none"),
        ("mylib/clip.py", "total += layer.norm(x)", NO_NORM, "python_none"),
        ("torch/serialization.py", "_ = pickle_module.load(f)", "KeyError: 101", "file_not_pickled"),
    ],
)
def test_the_frames_decide_what_a_message_of_many_meanings_says(frame: str, code: str, message: str, row: str) -> None:
    assert explain_error(_raised_in(frame, code, message)).matches[0].id == row


def test_an_error_of_compiled_code_below_the_users_line_is_the_librarys() -> None:
    frame = 'Traceback (most recent call last):\n  File "/home/me/train.py", line 9, in <module>\n    {}\n'
    message = "RuntimeError: Expected index [4, 6] to be no larger than self [3, 5] apart from dimension 0\n"
    assert explain_error(frame.format("out.scatter_(0, index, src)") + message).matches[0].id == "operator_shapes"
    assert explain_error(frame.format("raise RuntimeError(text)") + message).matches == []


def test_the_wrapper_of_a_workers_missing_file_is_not_taken_for_the_missing_file() -> None:
    outer = '  File "/opt/lib/site-packages/torch/_utils.py", line 7, in reraise\n    raise exception\n'
    wrapper = "FileNotFoundError: Caught FileNotFoundError in DataLoader worker process 0.\n"
    inner = 'Original Traceback (most recent call last):\n  File "/home/me/train.py", line 14, in __getitem__\n'
    message = "FileNotFoundError: [Errno 2] No such file or directory: 'features/vid_0000.pt'\n"
    answer = explain_error(f"Traceback (most recent call last):\n{outer}{wrapper}{inner}    return load(i)\n{message}")
    assert answer.matches[0].id == "file_missing"
    assert answer.error is not None
    assert "vid_0000" in answer.error.text


PACKAGES = "/opt/venv/lib/python3.12/site-packages"
NO_LIST = "ValueError: text input must be of type `str` (single example), `list[str]` (batch)"
INDEX = "RuntimeError: index 40 is out of bounds for dimension 0 with size 40"
REPORT = "TypeError: report() got an unexpected keyword argument 'accuracy'"


@pytest.mark.parametrize(
    ("text", "row"),
    [
        (
            traceback(INDEX, "train.py main", f"{PACKAGES}/torch_geometric/utils/_scatter.py scatter"),
            "edge_index_outside",
        ),
        (traceback(INDEX, "train.py main"), "index_out_of_dimension"),
        (
            traceback("KeyError: 'shape'", f"{PACKAGES}/transformers/tokenization_utils_base.py __getattr__"),
            "encoding_for_tensor",
        ),
        (traceback("KeyError: 'shape'", "train.py main"), "python_key"),
        (
            traceback(
                "ValueError: Unsupported input type: int. Expected one of: str, dict",
                f"{PACKAGES}/sentence_transformers/base/data_collator.py __call__",
                f"{PACKAGES}/sentence_transformers/base/modality.py infer_modality",
            ),
            "sentence_transformers_label_name",
        ),
        (traceback(REPORT, "train.py train", code="tune.report(accuracy=0.9)"), "tune_report_keywords"),
        (traceback(REPORT, "train.py train", code="report(accuracy=0.9)"), "python_call"),
        (
            traceback(
                "ValueError: Wrong dtype: expected int32, got int64.",
                "write.py main",
                f"{PACKAGES}/streaming/base/format/mds/encodings.py encode",
            ),
            "mds_column_dtype",
        ),
    ],
)
def test_the_frames_decide_what_words_of_many_libraries_mean(text: str, row: str) -> None:
    assert first_id(text) == row


@pytest.mark.parametrize(
    ("call", "file", "row"),
    [
        ('batch = tokenizer(raw_train_dataset["sentence"], padding=True)', "train.py main", "tokenizer_given_column"),
        ('tokens = self.tok(df["text"])', "train.py main", "tokenizer_given_column"),
        ('tokens = tokenizer(row["text"])', "train.py main", "tokenizer_text_none"),
        ('tokens = tokenizer(train["text"])', f"{PACKAGES}/datasets/arrow_dataset.py map", "tokenizer_text_none"),
        ('tokens = tokenizer(train["text"])', "data.py __getitem__", "tokenizer_text_none"),
    ],
)
def test_a_whole_column_for_the_tokenizer_is_distinguished_from_a_row_without_text(
    call: str, file: str, row: str
) -> None:
    assert first_id(traceback(NO_LIST, file, "train.py encode", code=call)) == row
