#!/usr/bin/env bash
# A diarization that knows who speaks at each moment has an error of 0.2 in pyannote: two segments of a speaker overlap.
#
# Guess: a speaker speaks or does not: two overlapping segments of A in the reference are A from the first to the last.
# Seen:  the moments that both segments cover have A twice, and a hypothesis with A once misses one of them. Reference
#        files that come from words or from windows that overlap have many such moments. Swapped, they are a false
#        alarm of 0.25. `skip_overlap` leaves them out of one side alone. The Jaccard error and the detection error of
#        the same package are 0, and so is the error after `support()`, which joins segments.
# With:  pyannote.metrics 4.2.0, pyannote.core 6.1.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q pyannote.metrics==4.2.0 pyannote.core==6.1.0 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
from pyannote.core import Annotation, Segment
from pyannote.metrics.detection import DetectionErrorRate
from pyannote.metrics.diarization import DiarizationErrorRate, JaccardErrorRate

in_pieces, whole = Annotation(), Annotation()
for number, (start, end, speaker) in enumerate([(0, 10, "A"), (5, 15, "A"), (15, 20, "B")]):
    in_pieces[Segment(start, end), number] = speaker
for number, (start, end, speaker) in enumerate([(0, 15, "first"), (15, 20, "second")]):
    whole[Segment(start, end), number] = speaker
for name, reference, found in (
    ("reference in pieces", in_pieces, whole),
    ("hypothesis in pieces", whole, in_pieces),
    ("pieces joined", in_pieces.support(), whole),
):
    error = DiarizationErrorRate()
    parts = error(reference, found, detailed=True)
    print(name, "| error", error(reference, found), "missed", parts["missed detection"], end=" ")
    print("false alarm", parts["false alarm"], "of", parts["total"], end=" ")
    print("| without overlap", DiarizationErrorRate(skip_overlap=True)(reference, found), end=" ")
    print("| Jaccard", JaccardErrorRate()(reference, found), "detection", DetectionErrorRate()(reference, found))
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
reference in pieces | error 0.2 missed 5.0 false alarm 0.0 of 25.0 | without overlap 0.0 | Jaccard 0.0 detection 0.0
hypothesis in pieces | error 0.25 missed 0.0 false alarm 5.0 of 20.0 | without overlap 0.25 | Jaccard 0.0 detection 0.0
pieces joined | error 0.0 missed 0.0 false alarm 0.0 of 20.0 | without overlap 0.0 | Jaccard 0.0 detection 0.0
SEEN
