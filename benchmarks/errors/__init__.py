"""How well error messages are recognised: those that installed libraries raise, and the logs of crashed jobs."""
