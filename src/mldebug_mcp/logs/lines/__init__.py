"""Lines of text → records: one module per shape that a printed record takes. `formats.text_log` puts them together."""
