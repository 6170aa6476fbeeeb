"""What every part stands on: errors, text, access to files, paths, limits, progress and the sandbox."""
