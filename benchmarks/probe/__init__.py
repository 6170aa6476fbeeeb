"""What the probe costs and how often it is right."""
