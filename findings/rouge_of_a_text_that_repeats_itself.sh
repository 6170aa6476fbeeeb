#!/usr/bin/env bash
# A summary that says one sentence twenty times has a ROUGE of 1.00 in the package rouge, and of 0.10 in rouge-score.
#
# Guess: ROUGE counts each word as often as it stands there, so that a loop has full recall and a precision of 1 in 20.
# Seen:  the package `rouge` makes sets of the words of both texts: a word that is said again changes nothing. A model
#        that fell into a loop, the usual failure of one that was trained too long or decodes greedily, scores like one
#        that is right, in ROUGE-1 and ROUGE-L. ROUGE-2 falls to 0.92 by the one pair across the seam. rouge-score and
#        torchmetrics count. Of texts without a repetition the three agree, so a trial shows nothing.
# With:  rouge 1.0.1, rouge-score 0.1.2, torchmetrics 1.9.0, torch 2.13.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
packages="rouge==1.0.1 rouge-score==0.1.2 nltk==3.10.4 torchmetrics==1.9.0 torch==2.13.0 numpy==2.4.6"
"$folder/env/bin/pip" install -q $packages 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
from rouge import Rouge
from rouge_score import rouge_scorer
from torchmetrics.functional.text.rouge import rouge_score

KEYS = ("rouge1", "rouge2", "rougeL")
right = "the storm closed two schools on monday"
for name, text in {
    "the sentence": right,
    "the sentence twenty times": " ".join([right] * 20),
    "half of it": "the storm closed",
    "half of it twenty times": " ".join(["the storm closed"] * 20),
}.items():
    ours = Rouge().get_scores(text, right)[0]
    plain = rouge_scorer.RougeScorer(KEYS).score(right, text)
    metric = rouge_score(text, right, rouge_keys=KEYS)
    print(name, "| rouge", *[f"{ours[key]['f']:.2f}" for key in ("rouge-1", "rouge-2", "rouge-l")], end="")
    print(" | rouge-score", *[f"{plain[key].fmeasure:.2f}" for key in KEYS], end="")
    print(" | torchmetrics", *[f"{float(metric[f'{key}_fmeasure']):.2f}" for key in KEYS])
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
the sentence | rouge 1.00 1.00 1.00 | rouge-score 1.00 1.00 1.00 | torchmetrics 1.00 1.00 1.00
the sentence twenty times | rouge 1.00 0.92 1.00 | rouge-score 0.10 0.08 0.10 | torchmetrics 0.10 0.08 0.10
half of it | rouge 0.60 0.50 0.60 | rouge-score 0.60 0.50 0.60 | torchmetrics 0.60 0.50 0.60
half of it twenty times | rouge 0.60 0.44 0.60 | rouge-score 0.09 0.06 0.09 | torchmetrics 0.09 0.06 0.09
SEEN
