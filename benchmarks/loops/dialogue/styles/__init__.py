"""All ways of writing a run down."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from benchmarks.loops.dialogue.core import Record
from benchmarks.loops.dialogue.styles import by_epoch, huggingface, lines, tables, toolkits, trackers

Style = Callable[[Record, Path], None]
STYLES: dict[str, Style] = {
    f.__name__: f
    for f in (
        lines.plain,
        lines.bars,
        lines.logger,
        lines.nano,
        lines.colour,
        lines.terse,
        lines.meters,
        lines.logfmt,
        lines.slurm,
        huggingface.hf_lines,
        huggingface.hf_state,
        huggingface.trl_block,
        toolkits.fairseq,
        toolkits.megatron,
        toolkits.opennmt,
        toolkits.torchtune,
        toolkits.deepspeed,
        toolkits.espnet,
        toolkits.hydra,
        by_epoch.fastai,
        by_epoch.blocks,
        tables.excel,
        tables.tsv,
        tables.sb3,
        by_epoch.markdown,
        tables.spacy,
        tables.csv_long,
        by_epoch.keras,
        tables.cleanrl,
        trackers.wandb,
        trackers.tensorboard,
        trackers.mlflow,
        trackers.lightning,
        trackers.nested,
        trackers.flat,
        trackers.columns,
        trackers.yaml_list,
        trackers.files,
        trackers.two_logs,
    )
}
EPOCHED = {"fastai", "blocks", "markdown", "keras", "yaml_list"}
