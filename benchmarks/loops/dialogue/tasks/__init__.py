"""The tasks: each module builds a task for the shared loop, or trains runs in a loop of its own."""
