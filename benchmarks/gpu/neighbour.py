"""Another process on the device: it holds numbers there and says, whenever it is asked, whether they are whole.

python -m benchmarks.gpu.neighbour DEVICE
"""

from __future__ import annotations

import sys

import torch

COUNT = 32 << 20


def main(device: str) -> None:
    """Hold numbers, and answer each line of standard input."""
    torch.set_num_threads(1)
    numbers = torch.arange(COUNT, device=device)
    whole = int(numbers.sum())
    print("ready", flush=True)
    for _ in sys.stdin:
        told = int((numbers + 0).sum()) == whole == COUNT * (COUNT - 1) // 2
        print("whole" if told else "spoilt", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
