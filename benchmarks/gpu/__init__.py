"""What a GPU alone can show: real memory snapshots, measured peaks, probes on the device, the recorder's overhead."""
