"""Speed, memory and accuracy, measured: each part is one command."""
