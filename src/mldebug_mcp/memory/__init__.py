"""CUDA memory snapshot → `MemorySnapshot`, without torch and without trusting the pickle."""
