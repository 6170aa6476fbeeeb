#!/usr/bin/env bash
# WebDataset joins files whose names differ behind their first dot into one sample.
#
# Guess: the key of clip_0.25.json is clip_0.25, as of os.path.splitext; two such files are two samples.
# Seen:  the key ends at the first dot: clip_0.25.json and clip_0.75.json are one sample, with the fields 25.json and
#        75.json.
# With:  webdataset 1.0.2
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q webdataset==1.0.2 2>/dev/null
cd "$folder"
env/bin/python - <<'PYTHON' | tee seen.txt
import io
import tarfile

import webdataset

with tarfile.open("shard.tar", "w") as shard:
    for name in ("clip_0.25.json", "clip_0.75.json", "clip_1.json"):
        entry = tarfile.TarInfo(name)
        entry.size = 2
        shard.addfile(entry, io.BytesIO(b"{}"))
for sample in webdataset.WebDataset("shard.tar", shardshuffle=False):
    print(sample["__key__"], sorted(field for field in sample if not field.startswith("__")))
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
clip_0 ['25.json', '75.json']
clip_1 ['json']
SEEN
