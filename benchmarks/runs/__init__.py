"""Many runs at once: how fast they are diagnosed, and whether what is said of them together is true."""
