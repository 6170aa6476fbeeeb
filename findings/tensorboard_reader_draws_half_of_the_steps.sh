#!/usr/bin/env bash
# TensorBoard's own reader returns 10,000 of a run's 20,000 losses, drawn at random; the one that exploded is not there.
#
# Guess: `EventAccumulator(folder).Scalars("loss")` has each value of the file, as an export has.
# Seen:  it keeps 10,000 of each scalar, a random sample of all, and the last one. Up to that length nothing is missing,
#        so that a script which is tried on short runs is right. Of a longer one steps are missing in between, without a
#        warning. A largest loss, a count of NaN, a mean of a window are of the sample. `{"scalars": 0}` keeps all.
# With:  tensorboard 2.21.0, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q tensorboard==2.21.0 numpy==2.4.6 "setuptools<80" 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter

for length in (10_000, 20_000):
    writer = EventFileWriter(f"run{length}")
    for step in range(length):
        loss = Summary.Value(tag="loss", simple_value=9.0 if step == 1234 else 1.0)
        writer.add_event(Event(step=step, wall_time=step, summary=Summary(value=[loss])))
    writer.close()
    for guidance in (None, {"scalars": 0}):
        read = EventAccumulator(f"run{length}", size_guidance=guidance).Reload().Scalars("loss")
        largest, gaps = max(event.value for event in read), read[-1].step + 1 - len(read)
        print("steps", length, "guidance", guidance, "| read", len(read), "missing", gaps, "| largest loss", largest)
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
steps 10000 guidance None | read 10000 missing 0 | largest loss 9.0
steps 10000 guidance {'scalars': 0} | read 10000 missing 0 | largest loss 9.0
steps 20000 guidance None | read 10000 missing 10000 | largest loss 1.0
steps 20000 guidance {'scalars': 0} | read 20000 missing 0 | largest loss 9.0
SEEN
