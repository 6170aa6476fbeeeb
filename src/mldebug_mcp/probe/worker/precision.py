"""Whether a pass is computed in few bits, and what it gives in 32."""

from __future__ import annotations

import copy
from typing import Any

import torch

from .subject import Subject
from .tree import mapped

LOW = (torch.float16, torch.bfloat16)


def is_low(subject: Subject) -> bool:
    """Tell whether the loss is computed, or the parameters are kept, in 16 bits."""
    return subject.dtype in LOW or any(one.dtype in LOW for _, one in subject.parameters())


def in_full_precision(subject: Subject) -> dict[str, Any]:
    """Return loss and finiteness of gradients of one pass with everything in 32 bits."""
    model = copy.deepcopy(subject.model).float()
    batch = mapped(subject.batch, lambda _, one: one.float() if one.is_floating_point() else one)
    usual = torch.autocast.__init__

    def disabled(self: Any, *arguments: Any, **keywords: Any) -> None:
        keywords["enabled"] = False
        usual(self, *arguments[:2], **keywords)

    torch.autocast.__init__ = disabled  # type: ignore[method-assign]
    try:
        loss = subject.loss(model, batch)
        if loss.requires_grad:
            loss.backward()  # type: ignore[no-untyped-call]
        finite = all(bool(torch.isfinite(one.grad).all()) for one in model.parameters() if one.grad is not None)
        return {"loss": float(loss.detach()), "gradients_finite": finite}
    except RuntimeError:
        return {}  # the loss function is tied to its precision
    finally:
        torch.autocast.__init__ = usual  # type: ignore[method-assign]
