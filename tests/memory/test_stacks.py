from __future__ import annotations

import pytest

from mldebug_mcp.memory.tables import Phase, Stacks

TORCH = "/opt/venv/lib/python3.11/site-packages/torch"
HF = "/opt/venv/lib/python3.11/site-packages/transformers"
MODULE = (f"{TORCH}/nn/modules/module.py", "_call_impl")
TRAINER = [(f"{HF}/trainer.py", "training_step"), (f"{HF}/trainer.py", "train"), ("/home/me/finetune.py", "main")]

PHASES: dict[str, tuple[Phase, list[tuple[str, str]]]] = {
    "linear forward": (
        Phase.FORWARD,
        [
            (f"{TORCH}/nn/modules/linear.py", "forward"),
            MODULE,
            (f"{HF}/models/llama/modeling_llama.py", "forward"),
            *TRAINER,
        ],
    ),
    "user forward": (Phase.FORWARD, [("/home/me/net.py", "forward"), MODULE, ("/home/me/train.py", "<module>")]),
    "C++ before python": (
        Phase.FORWARD,
        [
            ("??", "at::native::empty_cuda(c10::ArrayRef<long>)"),
            ("??", "torch::autograd::VariableType::(anonymous namespace)::mm(c10::DispatchKeySet, at::Tensor const&)"),
            (f"{TORCH}/nn/modules/linear.py", "forward"),
            MODULE,
        ],
    ),
    "backward from python": (
        Phase.BACKWARD,
        [
            (f"{TORCH}/autograd/graph.py", "_engine_run_backward"),
            (f"{TORCH}/autograd/__init__.py", "backward"),
            (f"{TORCH}/_tensor.py", "backward"),
            *TRAINER,
        ],
    ),
    "backward in C++": (
        Phase.BACKWARD,
        [
            ("??", "at::mm(at::Tensor const&)"),
            ("??", "torch::autograd::generated::MmBackward0::apply(std::vector<at::Tensor>&&)"),
            ("??", "torch::autograd::Engine::thread_main(std::shared_ptr<torch::autograd::GraphTask> const&)"),
        ],
    ),
    "Adam state": (
        Phase.OPTIMIZER_STATE,
        [
            (f"{TORCH}/optim/adamw.py", "_init_group"),
            (f"{TORCH}/optim/adamw.py", "step"),
            (f"{TORCH}/optim/optimizer.py", "wrapper"),
            ("/home/me/train.py", "step"),
        ],
    ),
    "Adam temporary": (
        Phase.OPTIMIZER,
        [
            (f"{TORCH}/optim/adam.py", "_multi_tensor_adam"),
            (f"{TORCH}/optim/adam.py", "step"),
            (f"{TORCH}/optim/optimizer.py", "wrapper"),
        ],
    ),
    "8-bit state": (
        Phase.OPTIMIZER_STATE,
        [
            ("/v/lib/python3.11/site-packages/bitsandbytes/optim/optimizer.py", "get_state_buffer"),
            ("/v/lib/python3.11/site-packages/bitsandbytes/optim/optimizer.py", "init_state"),
            ("/v/lib/python3.11/site-packages/bitsandbytes/optim/optimizer.py", "step"),
        ],
    ),
    "closure in optimizer.step": (
        Phase.FORWARD,
        [
            ("/home/me/net.py", "forward"),
            MODULE,
            ("/v/lib/python3.11/site-packages/lightning/pytorch/strategies/strategy.py", "training_step"),
            (f"{TORCH}/optim/adamw.py", "step"),
            ("/home/me/fit.py", "main"),
        ],
    ),
    "cross entropy": (
        Phase.LOSS,
        [
            (f"{TORCH}/nn/functional.py", "cross_entropy"),
            (f"{HF}/loss/loss_utils.py", "fixed_cross_entropy"),
            (f"{HF}/loss/loss_utils.py", "ForCausalLMLoss"),
            MODULE,
        ],
    ),
    "float logits": (
        Phase.LOSS,
        [(f"{HF}/loss/loss_utils.py", "ForCausalLMLoss"), (f"{HF}/models/llama/modeling_llama.py", "forward"), MODULE],
    ),
    "model to device": (
        Phase.SETUP,
        [
            (f"{TORCH}/nn/modules/module.py", "convert"),
            (f"{TORCH}/nn/modules/module.py", "_apply"),
            (f"{TORCH}/nn/modules/module.py", "to"),
            ("/home/me/train.py", "main"),
        ],
    ),
    "from_pretrained": (
        Phase.SETUP,
        [
            (f"{HF}/modeling_utils.py", "_load_state_dict_into_meta_model"),
            (f"{HF}/modeling_utils.py", "from_pretrained"),
            ("/home/me/train.py", "main"),
        ],
    ),
    "module init": (Phase.SETUP, [(f"{TORCH}/nn/modules/linear.py", "__init__"), ("/home/me/net.py", "__init__")]),
    "all_reduce": (
        Phase.COLLECTIVE,
        [(f"{TORCH}/distributed/distributed_c10d.py", "all_gather_into_tensor"), ("/home/me/train.py", "main")],
    ),
    "FSDP unshard": (
        Phase.COLLECTIVE,
        [
            (f"{TORCH}/distributed/fsdp/_flat_param.py", "_alloc_padded_unsharded_flat_param"),
            (f"{TORCH}/distributed/fsdp/_runtime_utils.py", "_pre_forward"),
            MODULE,
        ],
    ),
    "layer inside FSDP": (
        Phase.FORWARD,
        [
            (f"{TORCH}/nn/modules/linear.py", "forward"),
            MODULE,
            (f"{TORCH}/distributed/fsdp/fully_sharded_data_parallel.py", "forward"),
            MODULE,
        ],
    ),
    "layer inside DDP": (
        Phase.FORWARD,
        [(f"{TORCH}/nn/modules/linear.py", "forward"), MODULE, (f"{TORCH}/nn/parallel/distributed.py", "forward")],
    ),
    "recomputed in backward": (
        Phase.FORWARD,
        [
            (f"{TORCH}/nn/modules/linear.py", "forward"),
            MODULE,
            (f"{TORCH}/utils/checkpoint.py", "recompute_fn"),
            (f"{TORCH}/autograd/graph.py", "_engine_run_backward"),
        ],
    ),
    "data loading": (Phase.UNKNOWN, [("/home/me/train.py", "to_device"), ("/home/me/train.py", "main")]),
}


@pytest.mark.parametrize("name", PHASES)
def test_the_innermost_telling_frame_says_what_the_program_was_doing(name: str) -> None:
    expected, places = PHASES[name]
    stacks = Stacks()

    number = stacks.add([{"filename": file, "line": 1, "name": function} for file, function in places])

    assert stacks[number].phase is expected


def test_library_frames_fold_and_the_users_own_line_is_named() -> None:
    stacks = Stacks()
    places = [
        (f"{TORCH}/nn/modules/linear.py", "forward"),
        MODULE,
        (f"{HF}/models/llama/modeling_llama.py", "forward"),
        MODULE,
        *TRAINER,
    ]

    one = stacks[stacks.add([{"filename": file, "line": 7, "name": function} for file, function in places])]

    assert one.site == "llama/modeling_llama.py:7 forward"
    assert one.caller == "me/finetune.py:7 main"
    assert "… 1 library frame(s)" in one.frames


def test_equal_stacks_are_one_whether_or_not_they_share_objects() -> None:
    stacks = Stacks()
    frames = [{"filename": "a.py", "line": 1, "name": "f"}]

    copied = [dict(frame) for frame in frames]
    assert stacks.add(frames) == stacks.add(copied)
    assert stacks.add([]) == stacks.add(None) == 0


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("evaluate", True),
        ("validation_step", True),
        ("eval_loop", True),
        ("prediction_step", True),
        ("valid_one_epoch", True),
        ("train", False),
        ("retrieval", False),
    ],
)
def test_evaluation_is_known_by_the_name_of_a_caller(name: str, expected: bool) -> None:
    stacks = Stacks()
    frames = [{"filename": "m.py", "line": 1, "name": "forward"}, {"filename": "t.py", "line": 1, "name": name}]

    assert stacks[stacks.add(frames)].evaluation is expected


def test_the_users_line_is_found_beneath_two_hundred_frames_of_libraries() -> None:
    frames = [{"filename": "??", "line": 0, "name": f"call_{number}"} for number in range(200)]
    frames.append({"filename": "/home/me/finetune.py", "line": 12, "name": "main"})
    stacks = Stacks()

    assert stacks[stacks.add(frames)].site == "me/finetune.py:12 main"
