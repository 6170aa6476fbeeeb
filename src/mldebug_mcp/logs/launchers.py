"""What launchers write before a line to tell processes apart, for those who read records and those who read failures.

Each is a pattern with the number of the rank as its group.
"""

from __future__ import annotations

BRACKETED = r"\[\s*(?:default|[Rr]ank|GPU|gpu)\s*_?(?P<bracketed>\d{1,5})\s*\]"
"""torchrun's "[default3]:", torchtitan's "[rank3]:"."""
MPIRUN = r"\[\d{1,5},(?P<mpirun>\d{1,5})\]<std(?:out|err)>:"
"""mpirun --tag-output: "[1,3]<stderr>:"."""
NAMED = r"(?:rank|Rank|RANK)[ =:]?(?P<named>\d{1,5})\s*[:|\]-]"
"""One's own: "rank 3:", "Rank=3 |"."""
NUMBERED = r"(?P<numbered>\d{1,5}): "
"""srun --label: "3: ". So begins many another line: what follows has to tell."""
