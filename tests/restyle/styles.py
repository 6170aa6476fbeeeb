"""The named styles. Each line is a way in which somebody writes their logs."""

from __future__ import annotations

from collections.abc import Mapping

from tests.restyle.style import Style
from tests.restyle.templates import TEMPLATES
from tests.restyle.words import Naming

_MB = {"duration": "s", "size": "MB"}
_MS = {"duration": "ms", "size": "GiB"}
_PERCENT = {"duration": "sec", "size": "GB", "share": "pct"}
_ROOMS = {"pace": "perf", "machine": "sys"}
_TIMERS = {"pace": "time", "machine": "system"}
_HF = Naming(phase="eval")
_SLASH = Naming(phase="/", eval="val", groups=_ROOMS, units=_MB)
_BOX = Naming(phase="/", train="train", groups={"pace": "time", "machine": "system"}, units=_MB)

_FREE_FORM = (
    Style("jsonl_plain", "json", Naming(units=_MB), config="json_file"),
    Style("jsonl_namespaces", "json", _SLASH, digits=".8g", config="yaml_file", keys="nested"),
    Style("jsonl_split_field", "json", Naming(phase="", eval="valid", units=_MS), split="split", config="args_file"),
    Style("jsonl_camel", "json", Naming("camel", "_", eval="val", units=_MS, seed=3), config="json_file", keys="camel"),
    Style("jsonl_samples", "json", Naming(phase="eval", eval="test", units=_MB, seed=4), axis="samples"),
    Style("jsonl_tokens", "json", Naming(phase="/", eval="eval", groups=_ROOMS, units=_MS), axis="tokens", every=2),
    Style("jsonl_with_noise", "json", _SLASH, noise=True, config="printed_json", keys="short", earlier="memory"),
    Style("jsonl_global_step", "json", Naming(phase="eval", eval="valid", units=_MS, seed=11), axis_name="global_step"),
    Style("json_nested", "json_nested", Naming(phase="/", eval="val", groups=_TIMERS, units=_MS), config="toml_file"),
    Style("json_events", "json_event", Naming(units=_MB, seed=5), config="yaml_file", keys="short"),
    Style("trainer_prints", "dict", _HF, digits=".4f", axis="epoch_fraction", config="arguments"),
    Style("trainer_prints_strings", "dict_of_strings", _HF, digits=".4g", axis="epoch_fraction", every=5, noise=True),
    Style("dict_with_steps", "dict", Naming(eval="val", units=_PERCENT, seed=6), config="namespace", keys="short"),
    Style("dict_logged", "dict", Naming(phase="/", groups=_ROOMS, units=_MS), prefix="logging", config="printed_dict"),
    Style("equals", "equals", Naming(eval="val", units=_MS, seed=7), digits=".4f", config="command", keys="short"),
    Style("equals_upper", "equals_commas", Naming("upper", "_", units=_MB), digits=".5e", prefix="basic", axis="step0"),
    Style("equals_epochs", "equals", Naming(eval="val", units=_MB), digits=".5f", axis="epoch_iter", prefix="loguru"),
    Style("logfmt", "logfmt", Naming(phase="_", eval="val", units=_PERCENT, seed=8), config="block", keys="nested"),
    Style("colon_bars", "colon_bars", Naming(eval="val", units=_MB, unit_at="value"), digits=".4f", config="namespace"),
    Style("colon_bars_title", "colon_bars", Naming("title", "eval", eval="val", units=_MS, unit_at="brackets"), ".4f"),
    Style("colon_commas_glog", "colon_commas", Naming(eval="valid", units=_MB, seed=9), ".5g", prefix="glog", every=5),
    Style("colon_spaces_rank", "colon_spaces", Naming(units=_MS, unit_at="value", seed=10), ".4g", prefix="rank"),
    Style("colon_tabs", "colon_tabs", Naming("lower", eval="val", units=_MS, unit_at="brackets"), ".4f", prefix="iso"),
    Style("space_bars", "space_bars", Naming(eval="valid", units=_MS, seed=12), ".3f", config="dots", keys="megatron"),
    Style("sentence", "sentence", Naming("lower", eval="val", units=_PERCENT), ".4f", axis="epoch_iter"),
    Style("sentence_resumed", "sentence", Naming("lower", eval="test"), ".5f", noise=True, earlier="interrupt"),
    Style("brackets", "brackets", Naming("title", eval="val", units=_PERCENT, unit_at="brackets"), ".4f", every=2),
    Style("brackets_ray", "brackets", Naming("snake", "/", groups=_ROOMS, units=_MB), ".4g", prefix="ray"),
    Style("box", "box", _BOX, ".4g", axis_name="iterations"),
    Style("box_dots", "box", Naming("snake", ".", eval="val", groups=_ROOMS, units=_MS), ".3e", config="dataclass"),
    Style("grid", "grid", Naming(eval="val", units=_MB), ".4f", apart=False),
    Style("markdown", "markdown", Naming("title", "eval", eval="validation"), ".5f", axis="epoch", apart=False),
    Style("columns", "columns", Naming(eval="valid", phase="_", units=_MB), ".6f", axis="epoch", apart=False),
    Style("printed_csv", "printed_csv", Naming(eval="val", units=_MS, seed=13), noise=True, config="command"),
    Style("bar", "bar", Naming(eval="val", units=_MS, seed=14), ".4f", config="namespace", keys="short"),
    Style("bar_interrupted", "bar", Naming(phase="eval", units=_MB), ".3g", noise=True, earlier="interrupt"),
    Style("yaml_documents", "yaml_documents", Naming(phase="/", groups=_TIMERS, units=_MB), ".6g"),
    Style("pretty_dict", "pretty_dict", Naming(eval="val", units=_MS, seed=15), ".6g", every=5),
    Style("mllog", "mllog", Naming(phase="_", eval="eval", units=_MB), ".6g"),
    Style("attempts_equals", "equals", Naming(units=_MB), ".5f", config="namespace", earlier="memory", noise=True),
    Style("attempts_logged", "colon_commas", Naming(eval="val"), ".4f", prefix="logging_named", earlier="interrupt"),
    Style("attempts_json", "json", _HF, config="printed_json", earlier="memory"),
    Style("csv", "csv", Naming(eval="val", units=_MB), config="yaml_file", keys="nested"),
    Style("csv_lightning", "csv", Naming("snake", "_", eval="val", units=_MS), axis="step+epoch", config="hydra"),
    Style("csv_joined", "csv", Naming("kebab", "/", eval="val", units=_MB, seed=16), apart=False, every=5),
    Style("csv_epochs", "csv", Naming(eval="val"), axis="epoch", apart=False, config="json_file", keys="short"),
    Style("csv_title", "csv", Naming("title", "eval", eval="val", units=_MS, unit_at="brackets"), axis_name="Step"),
    Style("csv_suffix", "csv", Naming("snake", "end", eval="valid", units=_PERCENT, seed=17), axis_name="iteration"),
    Style("csv_pascal", "csv", Naming("pascal", "_", eval="val", units=_MS), axis_name="Iteration", every=2),
    Style("csv_padded", "csv_padded", Naming(phase="/", eval="val", groups=_ROOMS), ".5g", axis="epoch", apart=False),
    Style("csv_long", "csv_long", Naming(phase="/", eval="val", groups=_ROOMS, units=_MB), config="toml_file"),
    Style("csv_two_files", "csv_two", Naming(phase="", units=_MS, seed=18), config="yaml_file", keys="short"),
    Style("tsv", "tsv", Naming(phase=".", eval="dev", groups=_TIMERS, units=_MB, seed=19), axis_name="update"),
    Style("json_array", "json_array", Naming("camel", "_", eval="val", units=_MS), config="json_file", keys="camel"),
    Style("json_columns", "json_columns", Naming(eval="val"), axis="epoch", apart=False),
    Style("parquet", "parquet", Naming(phase="/", groups=_ROOMS, units=_MB, seed=20), config="hydra", keys="nested"),
    Style("trainer_state", "trainer_state", _HF, digits=".17g", axis="step+epoch", config="json_file"),
    Style("wandb_export", "wandb_export", _SLASH, ".8g", config="wandb", keys="nested"),
    Style("tensorboard", "tensorboard", Naming(phase="/", eval="val", groups=_ROOMS, units=_MB, seed=21), ".8g"),
    Style("tensorboard_csv", "tensorboard_csv", Naming(phase="/", eval="val", units=_MS), ".8g"),
    Style("mlflow", "mlflow", Naming("snake", "_", eval="val", units=_MB), ".8g"),
)  # fmt: skip
_CONFIGURED = {"megatron": ("dots", "megatron"), "torchtitan": ("toml_file", "nested"), "litgpt": ("arguments", "hf")}
_FRAMEWORKS = tuple(
    Style(name, name, noise=number % 3 == 2, config=config, keys=keys)
    for number, name in enumerate(TEMPLATES)
    for config, keys in [_CONFIGURED.get(name, ("", "hf"))]
)

STYLES: Mapping[str, Style] = {style.name: style for style in (*_FREE_FORM, *_FRAMEWORKS)}
"""By name."""
