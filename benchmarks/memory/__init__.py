"""What checking a memory snapshot costs, beside torch's own tools on the same file."""
