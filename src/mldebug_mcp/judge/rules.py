"""How to judge a run from facts: the rules that a reader, an agent and a client's model get alike."""

RULES = (
    "Keep at least three hypotheses. `healthy` and `unknown` are always among them.",
    "Ask of each hypothesis which facts it does not explain. What explains the earliest fact often explains the later.",
    "Compare each number with what is expected of it: chance, a ceiling, passes over the data, the planned schedule.",
    "What was not logged is unknown, not absent.",
    "What many healthy runs show too, such as clipping, noise or one spike that recovers, accuses nobody by itself.",
    "A result that is too good is as suspicious as one that is too bad.",
    "Doubt stays in the numbers: a probability of 0.9 has to be right nine times of ten.",
)
"""SKILL.md and the prompts of the server hold the same lines."""
