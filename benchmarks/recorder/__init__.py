"""What a recording costs, what a kill leaves of it, and what it adds to a diagnosis."""
