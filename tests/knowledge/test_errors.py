"""Known error messages: each pattern finds its own example and nothing that a healthy run prints."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from mldebug_mcp.core.errors import CatalogueError
from mldebug_mcp.judge.explain_error import explain_error
from mldebug_mcp.knowledge import errors as module
from mldebug_mcp.knowledge.errors import KnownError, Role, is_fragmented, known_errors, match

# A row that asks for the code or the component besides is tested with a traceback, in tests/judge.
WITH_MESSAGE = [row for row in known_errors().values() if row.pattern and not row.code and not row.component]
EXAMPLES = Path(__file__).parents[2] / "examples"
# A quantifier without a bound, or one over a group: what makes a pattern slow on hostile text.
UNBOUNDED = re.compile(r"(?<!\\d)(?<!\\)[*+]|\)\{\d*,?\d*\}")


@pytest.mark.parametrize("row", WITH_MESSAGE, ids=lambda row: row.id)
def test_a_message_is_matched_by_its_own_row_first(row: KnownError) -> None:
    assert match(row.message, warnings=True)[0].id == row.id


@pytest.mark.parametrize("row", WITH_MESSAGE, ids=lambda row: row.id)
def test_a_message_is_found_in_the_middle_of_a_log(row: KnownError) -> None:
    log = [f"step {step} loss 2.{step}" for step in range(300)]
    log.insert(170, row.message)
    answer = explain_error("\n".join(log))
    assert answer.error is not None
    assert answer.error.line == 171
    assert answer.matches[0].id == row.id


# What stands around an error in the logs of several ranks: warnings of the start, what CUDA adds, echoes, the launcher.
START = """\
/opt/venv/lib/site-packages/img/io.py:13: UserWarning: Failed to load: '/opt/img.so: undefined symbol: _ZN3c10'
  warn(
The installed version of bitsandbytes was compiled without GPU support.
node1:41:41 [0] NCCL INFO NET/Plugin : libnccl-net.so: cannot open shared object file: No such file or directory
Some weights of BertForX were not initialized from the model checkpoint and are newly initialized: ['score.weight']
Unable to obtain driver version
"""
CUDA_ADDS = """\
CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.
Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.
"""
TRACEBACK = (
    'Traceback (most recent call last):\n  File "/home/me/train.py", line 20, in main\n    loss = model(batch)\n'
)
CHECK = '  File "/opt/venv/lib/python3.12/site-packages/lib/config.py", line 5, in check\n    raise ValueError(\n'
"""What stands below it where a library refuses what it was given."""
WAITED = (
    "[rank0]:[E101 12:00:00.1 ProcessGroupNCCL.cpp:633] [Rank 0] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=5, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600000 milliseconds before timing out.\n"
)
LAUNCHER = """\
[2026-01-01 12:00:00,000] torch.distributed.elastic: [WARNING] Sending process 41 closing signal SIGTERM
[2026-01-01 12:00:01,000] torch.distributed.elastic: [ERROR] failed (exitcode: 1) local_rank: 1 (pid: 42)
Traceback (most recent call last):
  File "/opt/venv/bin/torchrun", line 8, in <module>
    sys.exit(main())
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
"""
FIRST_ERRORS = [row for row in WITH_MESSAGE if row.role is Role.ERROR]


@pytest.mark.parametrize("row", FIRST_ERRORS, ids=lambda row: row.id)
def test_a_message_is_chosen_among_what_stands_around_it(row: KnownError) -> None:
    is_exception = re.match(r"[\w.]*(?:Error|Exception|OutOfResources|Unsupported|Failed)\b", row.message) is not None
    is_check = row.general and row.condition != "operator"
    body = (TRACEBACK + CHECK * is_check if is_exception else "") + row.message + "\n" + CUDA_ADDS
    of_rank = "".join(f"[rank1]: {line}\n" for line in body.splitlines())
    for log in (body, START + body, START + WAITED + of_rank + WAITED + LAUNCHER):
        answer = explain_error(log)
        assert answer.matches[0].id == row.id


@pytest.mark.parametrize("row", known_errors().values(), ids=lambda row: row.id)
def test_a_pattern_has_no_unbounded_repetition(row: KnownError) -> None:
    for pattern in (row.pattern, row.code):
        outside_classes = re.sub(r"\[[^\]]*\]", "C", pattern)
        assert UNBOUNDED.search(outside_classes) is None


def healthy_lines() -> Iterator[str]:
    for path in sorted(EXAMPLES.glob("*/*")):
        if path.suffix in (".log", ".txt", ".jsonl", ".json", ".csv"):
            yield from path.read_text(encoding="utf-8").splitlines()


def test_no_line_of_the_examples_looks_like_an_error() -> None:
    seen = {row.id for line in set(healthy_lines()) for row in match(line)}
    assert seen == set()


def test_there_are_the_frameworks_that_users_meet() -> None:
    words = " ".join(row.message.lower() for row in WITH_MESSAGE)
    frameworks = (
        "cuda nccl deepspeed bitsandbytes tokenizer datasets safetensors dataloader dynamo vllm flashattention "
        "lightning keras jax fsdp peft pyarrow triton"
    )
    # FSDP and PEFT errors name no framework: their rows do.
    ids = " ".join(known_errors())
    assert [name for name in frameworks.split() if name not in words and name not in ids] == []
    assert len(known_errors()) >= 118


@pytest.mark.parametrize(
    ("text", "row"),
    [
        ("CUDA error: invalid device ordinal\nto enable device-side assertions.", "invalid_device_ordinal"),
        ("../Loss.cu:250: f: block: [0,0,0] Assertion `t >= 0 && t < n_classes` failed.", "cuda_assert_label"),
        ("../Gather.cu:97: f: block: [0,0,0] Assertion `idx < n` failed.", "device_side_assert"),
        ("AttributeError: /x/libbitsandbytes_cpu.so: undefined symbol: cquantize", "bnb_setup_failed"),
        ("ImportError: /x/fused_cuda.so: undefined symbol: cquantize", "fa2_undefined_symbol"),
        ("[0] alloc.h:99 NCCL WARN Cuda failure 'out of memory'", "cuda_error_oom_driver"),
        ("[0] alloc.h:99 NCCL WARN Cuda failure 'invalid argument'", "nccl_unhandled_cuda"),
        ("RuntimeError: unable to open shared memory object </torch_1_2> in read-write mode", "too_many_open_files"),
        (
            "RuntimeError: Sizes of tensors must match except in dimension 1. Expected size 4 but got 5",
            "cat_sizes",
        ),
        ("RuntimeError: GET was unable to find an engine to execute this computation", "cudnn_status"),
        ("RuntimeError: HIP error: no kernel image is available", "rocm_no_kernel"),
        ("train.py: error: argument --optim: invalid choice: 'lion'", "argument_unknown"),
        ("TypeError: GRPOConfig.__init__() got an unexpected keyword argument 'beta2'", "trl_argument_renamed"),
        ("TypeError: Trainer.__init__() got an unexpected keyword argument 'gpus'", "lightning_trainer_argument"),
        ("ValueError: vmap got inconsistent sizes for array axes to be mapped", "jax_pmap_sizes"),
        ("AttributeError: module 'numpy' has no attribute 'float_'", "numpy_alias_removed"),
        ("EOFError: Ran out of input", "checkpoint_cut_off"),
        ("RuntimeError: Caught RuntimeError in replica 3 on device 3.", "caught_dataloader_exception"),
        ("torch.distributed.DistNetworkError: The client socket has timed out after 60000ms", "rendezvous_timeout"),
        (
            "ValueError: You should supply an encoding or a list of encodings to this method that includes"
            " input_ids, but you provided ['label']",
            "columns_removed",
        ),
        ("ImportError: /lib64/libstdc++.so.6: version `GLIBCXX_3.4.30' not found", "glibc_version"),
        ("ValueError: loaded state dict has a different number of parameter groups", "param_group_size"),
        ("RuntimeError: Trying to resize storage that is not resizable", "stack_equal_size"),
        ("ValueError: Error when checking target: expected dense_7 to have shape (3,) but got (1,)", "keras_shapes"),
        ("jax.errors.TracerIntegerConversionError: The __index__() method was called on traced", "jax_tracer_bool"),
        ("TypeError: Trainer.__init__() got an unexpected keyword argument 'processing_class'", "trl_argument_renamed"),
        (
            "MisconfigurationException: ModelCheckpoint(monitor='val/f1') not found in the returned metrics: ['loss']",
            "lightning_monitor",
        ),
        ("ValueError: bf16 mixed precision requires PyTorch >= 1.10 and a supported device.", "bf16_unsupported"),
        ("AssertionError: Label class 7 exceeds nc=7 in my.yaml", "target_out_of_bounds"),
        (
            "IndexKernel.cu:92: block: [1,0,0] Assertion `index >= -sizes[i] && index < sizes[i]` failed",
            "cuda_assert_index",
        ),
        ("Loss.cu:240: block: [0,0,0] Assertion t >= 0 && t < n_classes failed", "cuda_assert_label"),
        ("AttributeError: 'CallbackHandler' object has no attribute 'tokenizer'", "trl_argument_renamed"),
        ("RuntimeError: Failed to import transformers.x because of the following error (look up)", "import_name"),
        (
            "Worker exit detail: Worker unexpectedly exits with a connection error code 2. End of file.",
            "ray_worker_died",
        ),
        ("No 'test_dataloader()' method defined to run 'Trainer.test'", "lightning_dataloader_missing"),
        ("TypeError: length_reward() missing 2 required positional arguments: 'a' and 'b'", "reward_column_missing"),
        ("AssertionError: Your environment must inherit from the gymnasium.Env class cf. the docs", "gym_or_gymnasium"),
        ("NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.", "ecc_xid"),
        ("NVRM: Xid (PCI:0000:3b:00): 13, Graphics Exception: ESR 0x504730=0x20", "xid_application"),
        (
            "ValueError: Total number of attention heads (64) must be divisible by tensor parallel size (3).",
            "parallel_sizes_divide",
        ),
        (
            "InvalidArgumentError: logits and labels must have the same first dimension, got logits shape",
            "keras_shapes",
        ),
        ("RuntimeError: makeDeviceForHostname(): unsupported gloo device", "gloo_connect"),
        ("[../gloo/transport/tcp/pair.cc:799] connect [172.31.71.170]:13195: Connection refused", "gloo_connect"),
        ("[../gloo/transport/tcp/pair.cc:598] Connection closed by peer [127.0.0.1]:1234", "store_connection_reset"),
        ("RuntimeError: Expected b.scalar_type() == torch::kBFloat16 to be true, but got false.", "dtype_mismatch"),
        ("RuntimeError: NPU out of memory. Tried to allocate 2.00 GiB", "cuda_oom"),
        ("cupy.cuda.memory.OutOfMemoryError: Out of memory allocating 2,048 bytes", "cuda_oom"),
        ("Insufficient Memory (00000008:kIOGPUCommandBufferCallbackErrorOutOfMemory)", "mps_oom"),
        ("[1]    51234 killed     python train.py", "host_killed"),
        ("run.sh: line 12: 4242 Killed                  python train.py", "host_killed"),
        ("Process finished with exit code 137 (interrupted by signal 9: SIGKILL)", "exitcode_minus_9"),
        ("      Reason:       OOMKilled", "slurm_oom_kill"),
        ("ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.", "slurm_oom_kill"),
        ("XlaRuntimeError: RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. Ran out of memory in hbm.", "tpu_oom"),
        ("RuntimeError: Placeholder storage has not been allocated on MPS device!", "same_device"),
        ("ValueError: `Dataloader` returned 0 length. Please make sure that it returns 1 batch", "empty_dataset"),
        ("OSError: dlopen(x.so, 6): Symbol not found: __ZNK2at6Tensor6deviceEv", "fa2_undefined_symbol"),
        ("OSError: [WinError 1455] 页面文件太小，无法完成操作。 Error loading", "windows_paging_file"),
        ("TypeError: Descriptors cannot not be created directly.", "protobuf_descriptors"),
        (
            "ImportError: DLL load failed while importing _C: The specified module could not be found.",
            "windows_dll_load",
        ),
        ("RuntimeError: Ninja is required to load C++ extensions", "cuda_extension_build"),
        ("socket.gaierror: [Errno -2] Name or service not known", "server_not_reached"),
        ("NCCL WARN NET/IB : Got completion from peer 10.2.1.2<549> with status=12 opcode=0", "nccl_ib_completion"),
        ("jaxlib version 0.5.1 is newer than and incompatible with jax version 0.4.30.", "jaxlib_version"),
        ("AttributeError: Can't get local object 'make.<locals>.hook'", "cannot_pickle"),
        ("*** SIGABRT received by PID 545 (TID 545) on cpu 25 from PID 545; stack trace: ***", "aborted"),
        ("subprocess.CalledProcessError: Command '['/usr/bin/python3', 'train.py']' returned", "child_failed"),
        (
            "HTTPSConnectionPool(host='huggingface.co', port=443): Max retries exceeded with url: /api/models/x",
            "hub_offline",
        ),
        ("HTTPError: 401 Client Error: Unauthorized for url: https://huggingface.co/api/whoami", "gated_repo"),
        (
            "TypeError: _unsloth_get_batch_samples() takes 3 positional arguments but 4 were given",
            "trainer_override_outdated",
        ),
        (
            "TypeError: MyTrainer.compute_loss() takes from 3 to 4 positional arguments but 5 were given",
            "trainer_override_outdated",
        ),
        ("AttributeError: 'SGD' object has no attribute 'train'", "optimizer_train"),
        ("KeyError: 'eval_loss'", "best_metric_missing"),
        ("ImportError: Using the `Trainer` with `PyTorch` requires `accelerate>=0.26.0`", "package_version_required"),
        ("OSError: Error no file named model.safetensors found in directory ./out.", "file_not_in_repo"),
        ("ValueError: You have to specify either decoder_input_ids or decoder_inputs_embeds", "inputs_missing"),
        ("RuntimeError: still have inflight params [{'id': 723, 'status': 'AVAILABLE'}]", "zero3_trace"),
        (
            "RuntimeError: The tensor has a non-zero number of elements, but its data is not allocated yet.",
            "fsdp_freed_storage",
        ),
        ("KeyError: MetadataIndex(fqn='decoder.w', offset=torch.Size([2, 0]), index=24)", "megatron_dist_checkpoint"),
        ("AttributeError: 'DataParallel' object has no attribute 'save_pretrained'", "wrapper_hides_attribute"),
        ("KeyError: 'LOCAL_RANK'", "process_group_env"),
        ("RuntimeError: The connection to the C10d store has failed. See inner exception", "rendezvous_closed"),
        ("NCCL WARN Call to ibv_modify_qp failed with error Connection timed out", "nccl_no_interface"),
        ("TypeError: cross_entropy_loss(): argument 'input' (position 1) must be Tensor, not tuple", "must_be_tensor"),
        ("ValueError: only one element tensors can be converted to Python scalars", "one_element"),
        ("ValueError: The truth value of an array with more than one element is ambiguous.", "ambiguous_truth"),
        ("RuntimeError: Found dtype Double but expected Float", "dtype_mix_other"),
        (
            "RuntimeError: Given input size: (512x1x1). Calculated output size: (512x0x0). Output size is too small",
            "image_too_small",
        ),
        ("ValueError: need at least one array to concatenate", "empty_tensor_list"),
        (
            "RuntimeError: Could not run 'torchvision::nms' with arguments from the 'CUDA' backend.",
            "torchvision_mismatch",
        ),
        ("PIL.UnidentifiedImageError: cannot identify image file 'x.jpg'", "image_unreadable"),
        (
            "pyarrow.lib.ArrowInvalid: Could not convert 'a' with type str: tried to convert to double",
            "arrow_types_mixed",
        ),
        ("ValueError: Prompt length 2134 is longer than 1024.", "prompt_too_long"),
        ("AttributeError: type object 'Trainer' has no attribute 'add_argparse_args'", "lightning_removed"),
        (
            "MisconfigurationException: You requested gpu: [1] But your machine only has: [0]",
            "lightning_no_accelerator",
        ),
        ("ValueError: could not convert string to float: 'abc'", "tf_cast_string"),
        ("ValueError: Received incompatible devices for jitted computation. Got argument x", "jax_sharding_rank"),
        (
            "gym.error.DeprecatedEnv: Env Reacher-v1 not found (valid versions include ['Reacher-v2'])",
            "gym_env_missing",
        ),
        ("TypeError: reset() takes 1 positional argument but 2 were given", "gym_reset_arguments"),
        ("ValueError: label must be in [0, num_class).", "trees_labels"),
        ("lightgbm.basic.LightGBMError: GPU Tree Learner was not enabled in this build.", "xgboost_no_gpu"),
        ("omegaconf.errors.ConfigAttributeError: Key 'lr' is not in struct", "hydra_override"),
        ("bash: torchrun: command not found", "script_not_found"),
        ("RuntimeError: CUDA driver version is insufficient for CUDA runtime version", "cuda_driver_too_old"),
        ("RuntimeError: CUDA error: device kernel image is invalid", "bnb_no_kernel_image"),
        ("triton.runtime.errors.PTXASError: PTXAS error: Internal Triton PTX codegen error", "cuda_ptx_version"),
        ("rocBLAS error: Cannot read TensileLibrary.dat: for GPU arch : gfx1010", "miopen_status"),
        (
            "raise ValueError('remaining_argv: [..]') ValueError: remaining_argv: ['--train_type', 'sft']",
            "hydra_override",
        ),
        ("train.py: error: argument --lr: invalid float value: 'abc'", "argument_unknown"),
        ("KeyError: 'unexpected key \"conv.0.weight\" in state_dict'", "state_dict_keys"),
        ("RuntimeError: Found no NVIDIA driver on your system.", "no_cuda_gpus"),
        ("numpy.linalg.LinAlgError: SVD did not converge", "linalg_failed"),
        (
            "CalledProcessError: Command '['p.exe']' returned non-zero exit status 3221225477.",
            "windows_access_violation",
        ),
        ("ValueError: zero-size array to reduction operation maximum which has no identity", "empty_reduction"),
        ("ValueError: Using torch.compile requires PyTorch 2.0 or higher.", "package_version_required"),
        ("AttributeError: module 'PIL.Image' has no attribute 'ANTIALIAS'", "removed_name"),
        ("AttributeError: 'BatchEncoding' object has no attribute 'cuda'", "not_a_tensor"),
        ("ValueError: expected sequence of length 32 at dim 1 (got 28)", "unable_to_create_tensor"),
        ("RuntimeError: Socket Timeout", "nccl_id_exchange"),
        ("AttributeError: module 'numpy' has no attribute 'foo'", "package_attribute"),
        ("ModuleNotFoundError: No module named 'distutils_extra'", "module_missing"),
        ("ModuleNotFoundError: No module named 'keras.engine'", "module_part_missing"),
        (
            "RuntimeError: Failed to import a.b because of the following error (look up to see its traceback): "
            "No module named 'accelerate'",
            "module_missing",
        ),
        (
            "RuntimeError: Failed to import a.b because of the following error (look up to see its traceback): "
            "libcudart.so.11.0: cannot open shared object file: No such file or directory",
            "cuda_library_missing",
        ),
        ("AttributeError: 'DPOTrainer' object has no attribute 'ref_adapter'", "hf_object_lacks"),
        ("AttributeError: 'Qwen2Config' object has no attribute 'rope_theta'", "hf_object_lacks"),
        ("RuntimeError: CUDA driver error: out of memory", "cuda_error_oom_driver"),
        ("KeyError: 'layers.0.attention.wq.weight'", "state_dict_keys"),
        ("ValueError: not a valid file: Found array with dim 4. Estimator expected <= 2.", "sklearn_array_dims"),
        ("double free or corruption (!prev)", "heap_corrupted"),
        ("RuntimeError: CUDA error: invalid configuration argument", "cuda_invalid_configuration"),
        ("RuntimeError: CUDA error: invalid argument", "cuda_invalid_value"),
        ("[rank1]:[E1 ProcessGroupNCCL.cpp:1400] Heartbeat monitor timed out! Process will be", "nccl_watchdog_stuck"),
        (
            "RuntimeError: You set `ignore_mismatched_sizes` to `False`, thus raising an error. For details look",
            "state_dict_shapes",
        ),
        ("OutOfMemoryError: out of resource: triton_red_fused_3 Required: 229408", "triton_out_of_resources"),
        ("[malloc] Unable to allocate 38654705664 bytes.", "mlx_oom"),
        ("ValueError: TP and CP are mutually exclusive. Set one.", "settings_conflict"),
        ("*** stack smashing detected ***: terminated", "heap_corrupted"),
        ("RuntimeError: can't start new thread", "threads_exhausted"),
        ("FileNotFoundError: [Errno 2] No such file or directory: 'ninja'", "program_missing"),
        ("bash: line 1: nvcc: command not found", "program_missing"),
        (
            "subprocess.CalledProcessError: Command '['which', 'c++']' returned non-zero exit status 1.",
            "compiler_missing",
        ),
        ("Process finished with exit code -1073741795 (0xC000001D)", "illegal_instruction"),
        ("OverflowError: out of range integral type conversion attempted", "decode_ids_outside"),
        ("TypeError: Net.forward() takes 2 positional arguments but 3 were given", "forward_arity"),
        ("ValueError: Unable to find it. OSError: Can't load the model for 'gpt2'. If you were", "repo_not_found"),
        ("AttributeError: 'super' object has no attribute '__sklearn_tags__'", "sklearn_newer_than_library"),
        ("TypeError: adamw() got an unexpected keyword argument 'lr'", "optax_learning_rate_name"),
        ("ValueError: Argument(s) not recognized: {'lr': 0.001}", "keras_optimizer_argument"),
        ("TypeError: JAXTrainer.fit() got an unexpected keyword argument 'workers'", "keras_fit_argument"),
        ("TypeError: OneHotEncoder.__init__() got an unexpected keyword argument 'sparse'", "sklearn_argument_renamed"),
        ("ValueError: Solver lbfgs supports only 'l2' or None penalties, got l1 penalty.", "sklearn_solver_penalty"),
        ("TypeError: Missing required argument `wrt`. As of Flax 0.11.0 the", "flax_nnx_optimizer_wrt"),
        ("TypeError: dot_general requires contracting dimensions to have the same shape", "jax_contraction"),
        ("TypeError: object of type 'generator' has no len()", "iterable_without_length"),
        ("AttributeError: 'EagerTensor' object has no attribute 'backward'", "array_for_tensor"),
        ("urllib.error.URLError: <urlopen error [Errno 104] Connection reset by peer>", "transfer_cut_off"),
        ("SafetensorError: Error while serializing: I/O error: No space left on device (os error 28)", "no_space_left"),
        ("SafetensorError: Error while serializing: I/O error: Invalid argument (os error 22)", "storage_io"),
        ("openai.InternalServerError: Error code: 502 Bad Gateway", "server_failed"),
        ("ValueError: cosin is not a valid SchedulerType, please select one of ['linear']", "setting_out_of_range"),
        ("ValueError: load_in_4bit and load_in_8bit are both True, but only one can be used", "settings_conflict"),
        ("ValueError: When init='TEXT', tokenizer_name_or_path can't be None.", "setting_missing"),
        ("ValueError: Unknown scheduler type: cosine_warm", "name_unknown"),
        ("ImportError: You need to install `galore_torch` in order to use it.", "optional_package_missing"),
        ("NotImplementedError: Requested bias: alll, is not implemented.", "combination_unsupported"),
        ("ValueError: The list of weights does not match the list of functions", "sizes_disagree"),
        ("RuntimeError: einsum(): the number of subscripts in the equation (3) does not match", "einsum_shapes"),
        ("yaml.scanner.ScannerError: while scanning for the next token", "yaml_syntax"),
        ("jinja2.exceptions.TemplateAssertionError: No filter named 'frobnicate'.", "template_syntax"),
        ("FileNotFoundError: [Errno 2] No such file or directory: 'runs/7/optimizer.pt'", "file_missing"),
        ("OSError: Repo id must use alphanumeric chars and the maximum length is 96: ''.", "model_name_empty"),
        ("RuntimeError: prob: invalid multinomial distribution (sum of probabilities <= 0)", "probability_tensor_nan"),
        ("RuntimeError: result type Float can't be cast to the desired output type long int", "operator_types"),
        ("RuntimeError: shape mismatch in my op", "operator_shapes"),
        ("RuntimeError: Expected weights of size 4 but got 5", "operator_shapes"),
        ("RuntimeError: expected dtype float32 for input", "operator_types"),
        ("RuntimeError: input_lengths must be of size batch_size", "ctc_batch_size"),
        (
            "RuntimeError: Expected tensor to have CPU Backend, but got tensor with CUDA Backend (while checking "
            "arguments for cudnn_ctc_loss)",
            "same_device",
        ),
        ("RuntimeError: grad_scale is too small, exiting: 8.9e-16", "loss_scale_min"),
        ("Exception: Skipped 50 iterations in a row due to Overflow - Exiting training.", "loss_scale_min"),
        ("F0903 14:31:26.1 9 syncedmem.cpp:56] Check failed: error == cudaSuccess (2 vs. 0) out of memory", "cuda_oom"),
        (
            "[14:51:23] src/ndarray/ndarray.cc:159: Check failed: from.shape() == to->shape() operands shape mismatch",
            "caffe_shape_check",
        ),
        ("Invalid operation is performed in: ReLU (Forward)", "chainer_invalid_type"),
        ("Launch kernel failed: Bprop/gradDense/Reshape-op278", "ascend_inner_error"),
    ],
)
def test_a_message_in_other_words_is_matched(text: str, row: str) -> None:
    assert match(text)[0].id == row


@pytest.mark.parametrize(
    "text",
    [
        "TypeError: Net.__init__() got an unexpected keyword argument 'width'",
        "AssertionError: hidden size 10 is not what the checkpoint has",
        "KeyError: 'registry'",
        "google.api_core.exceptions.ResourceExhausted: 429 RESOURCE_EXHAUSTED. {'message': 'You exceeded your quota'}",
        "requests.exceptions.HTTPError: 401 Client Error: Unauthorized for url: https://tracker.example/api",
        "TypeError: '<' not supported between instances of 'float' and 'str'",
        "subprocess.CalledProcessError: Command '['ffmpeg', '-i', 'a.mp4']' returned non-zero exit status 1.",
        "AssertionError: Expected target boxes to be a tensor of shape [N, 4], got torch.Size([0]).",
        "AssertionError",
        "Installed CUDA version 12.3 does not match the version torch was compiled with 12.4 but since the APIs are",
        "Killed idle environment worker 7 after 300 s",
        "TypeError: f1_score() missing 1 required positional argument: 'y_pred'",
        "ValueError: num_samples must be divisible by epochs",
        "ValueError: could not broadcast input array from shape (3,) into shape (2,)",
        "ValueError: the number of heads must be divisible by the group size",
        "ValueError: not enough values to unpack (expected 5, got 4)",
        "slow: Unable to register cuDNN factory: Attempting to register factory for plugin cuDNN",
        "TypeError: my_step() takes 3 positional arguments but 4 were given",
        "TypeError: evaluate() takes 2 positional arguments but 3 were given",
        "TypeError: training_step() takes 2 positional arguments but 3 were given",
        "INFO:jax._src.xla_bridge:Unable to initialize backend 'tpu': INTERNAL: Failed to open libtpu.so",
        "run.sh: line 3: module: command not found",
        "KeyError: 'evaluator'",
        "KeyError: 'optimizer'",
        "AssertionError: expected 400 pairs, found 398",
        "ValueError: not enough values to unpack (expected 2, got 0)",
        "TypeError: not a string",
        "AttributeError: 'MyTrainer' object has no attribute 'rollouts'",
        "AttributeError: 'NoneType' object has no attribute 'shape'",
        "ValueError: batch_size (10) must be divisible by group_size (4)",
        "UndefinedMetricWarning: Only one class is present in y_true. ROC AUC score is not defined in that case.",
        "NCCL INFO NET/Plugin: Could not find: libnccl-net.so. Using internal net plugin.",
        "[LightGBM] [Warning] No further splits with positive gain, best gain: -inf",
        "Invalidate trace cache @ step 414: expected module 2612, but got module 2248",
        "UserWarning: resource_tracker: There appear to be 1 leaked semaphore objects to clean up at shutdown",
        "The following values were not passed to `accelerate launch` and had defaults used instead:",
        "WARNING: xFormers is not available: No module named 'xformers'",
        "A matching Triton is not available: No module named 'triton.language'",
        "flash_attn is not used (No module named 'flash_attn')",
        "AttributeError: 'MyModelConfig' object has no attribute 'width'",
        "AttributeError: 'Config' object has no attribute 'width'",
        "KeyError: 'model.width'",
        "FileNotFoundError: [Errno 2] No such file or directory: 'data'",
        "Check failed: (x.size()) == (0) in my_kernel",
        "IndexError: pop from an empty list",
        "huggingface_hub.errors.LocalEntryMissing: nothing",
        "UserWarning: MyModel does not support Flash Attention 2.0 and falls back",
        "AttributeError: 'list' object has no attribute 'shape'",
        "AttributeError: 'str' object has no attribute 'decode'",
        "TypeError: object of type 'NoneType' has no len()",
        "step 502 Server Errors: 0",
        "requests.exceptions.HTTPError: 403 Client Error: Forbidden for url: https://tracker.example/api",
    ],
)
def test_a_message_that_only_looks_like_a_known_one_is_not_matched(text: str) -> None:
    assert [row.id for row in match(text, warnings=True) if not row.interpreter] == []


def test_warnings_count_only_when_they_are_asked_for() -> None:
    text = "`use_cache=True` is incompatible with gradient checkpointing. Setting `use_cache=False`..."
    assert match(text) == []
    assert [row.role for row in match(text, warnings=True)] == [Role.WARNING]


@pytest.mark.parametrize(
    ("text", "fragmented"),
    [
        ("Tried to allocate 304.00 MiB (GPU 0; 8.00 GiB total; 142.76 MiB already allocated; 6.32 GiB free;", True),
        ("Tried to allocate 2.00 GiB. GPU 0 has 79.15 GiB of which 1.10 GiB is free. ", False),
        ("Tried to allocate 2.00 GiB. 1.00 GiB is free. 9.00 GiB is reserved by PyTorch but unallocated", True),
        ("Tried to allocate 1.00 GiB. 7.43 GiB is free. 7.37 GiB allowed; 7.01 GiB is allocated by PyTorch", False),
        ("CUDA out of memory.", False),
        ("pool: failed to allocate 24.0 MiB (in use 41 MiB, free 86 MiB in 37 blocks, largest 16.7 MiB)", True),
        ("failed to allocate 2.0 GB: 3.1 GB free, largest free block: 1.2 GB", True),
        ("arena: tried to take 18.6 MiB (capacity 64 MiB; 28.2 MiB free in 49 blocks, largest block 18.1 MiB)", True),
        ("workspace: could not reserve 2.5 GiB, 6.1 GiB free, largest 2.0 GiB", True),
        ("slab: unable to get 64 MB (free: 50 MB, largest: 20 MB)", False),
        ("arena failed to allocate 24.0 MiB (free 86 MiB, largest block 30 MiB)", False),
        ("failed to allocate 24.0 MiB (free 12.0 MiB in 2 blocks, largest 8.0 MiB)", False),
        ("Tried to allocate 20.00 MiB (GPU 0; 10.76 GiB total; 9.76 GiB already allocated; 21.12 MiB free;", False),
        (
            "Tried to allocate 20.00 MiB. 23.10 GiB is allocated by PyTorch, 61.00 MiB is reserved by PyTorch but "
            "unallocated",
            False,
        ),
    ],
)
def test_fragmentation_is_read_from_the_numbers_of_the_message(text: str, fragmented: bool) -> None:
    assert is_fragmented(text) is fragmented


CROWDED = "Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.10 GiB of which 1.20 GiB is free. "


@pytest.mark.parametrize(
    ("listed", "shared"),
    [
        ("Process 123 has 77.90 GiB memory in use. Of the allocated memory 60.10 GiB is allocated by PyTorch", False),
        ("Process 123 has 40.00 GiB memory in use. Of the allocated memory 37.10 GiB is allocated by PyTorch", True),
        ("Process 123 has 40.00 GiB memory in use. Process 124 has 37.90 GiB memory in use. Of the allocated memory "
         "37.10 GiB is allocated by PyTorch", True),
        ("Process 123 has 40.00 GiB memory in use. Including non-PyTorch memory, this process has 37.90 GiB memory in "
         "use.", True),
    ],
)  # fmt: skip
def test_a_process_in_a_container_is_not_taken_for_another_one(listed: str, shared: bool) -> None:
    assert ("gpu_shared_with_process" in {one.id for one in match(CROWDED + listed)}) is shared


def test_a_message_wrapped_over_lines_and_coloured_is_matched() -> None:
    assert match("\x1b[31mCUDA out\x1b[0m of\n   memory.\nTried to allocate 2 GiB")[0].id == "cuda_oom"


@pytest.mark.parametrize("text", ["", "\x00", "a" * 100_000, "Process " * 20_000, "Shapes (" * 20_000, "\ud800"])
def test_hostile_text_matches_nothing(text: str) -> None:
    assert match(text) == []


@pytest.mark.parametrize(
    ("line", "problem"),
    [("not json", "Expecting value"), ('{"id": "x"}', "validation error"), ("", "Expecting value")],
)
def test_a_row_that_breaks_the_grammar_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, problem: str
) -> None:
    (tmp_path / "errors.jsonl").write_text(line + "\n", encoding="utf-8")
    monkeypatch.setattr(module, "__file__", str(tmp_path / "errors.py"))
    known_errors.cache_clear()
    try:
        with pytest.raises(CatalogueError, match=rf"errors\.jsonl:1: .*{problem}"):
            known_errors()
    finally:
        known_errors.cache_clear()
