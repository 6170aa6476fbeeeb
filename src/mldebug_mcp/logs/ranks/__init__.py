"""The files that the ranks of one job write: which they are, how each rank ended, and which of them stands out."""
