"""Scripts that write the samples of trackers and frameworks in tests/logs/samples/far with the real packages."""
