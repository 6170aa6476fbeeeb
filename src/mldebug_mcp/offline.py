"""The settings that keep third-party libraries off the network."""

from __future__ import annotations

OFFLINE = {
    "HF_HUB_OFFLINE": "1",
    "HF_HUB_DISABLE_IMPLICIT_TOKEN": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "WANDB_MODE": "disabled",
    "DO_NOT_TRACK": "1",
}
"""Environment variables of huggingface_hub, transformers, W&B and those that honour DO_NOT_TRACK."""
