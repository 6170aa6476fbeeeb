"""Models with their data, one field of research a file."""
