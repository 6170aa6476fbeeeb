"""How well error messages are recognised: messages of pinned releases, messages really raised, and crashed jobs."""
