#!/usr/bin/env bash
# A translation without a mistake has a BLEU of 0 where no sentence has four words; one longer sentence makes it 100.
#
# Guess: a text scored against itself has BLEU 100, in each library; short sentences have fewer n-grams to count.
# Seen:  no n-gram of four words is to be found, and a precision of 0 out of 0 counts as 0. sacreBLEU, torchmetrics and
#        NLTK all say 0 for a model that is right in each word. With one sentence of four words two of them say 100; NLTK
#        says 62, since it counts an n-gram for each short sentence that cannot have one. A score on commands, titles or
#        single words so stands at 0 from the first epoch to the last.
# With:  sacrebleu 2.6.0, nltk 3.10.4, torchmetrics 1.9.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q sacrebleu==2.6.0 nltk==3.10.4 torchmetrics==1.9.0 torch==2.13.0 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import sacrebleu
from nltk.translate.bleu_score import corpus_bleu
from torchmetrics.functional.text import bleu_score

short = ["good morning", "thank you", "see you soon"]
for name, texts in {"up to three words": short, "and one of four": [*short, "one two three four"]}.items():
    words = [text.split() for text in texts]
    found = {
        "sacrebleu": sacrebleu.corpus_bleu(texts, [texts]).score,
        "nltk": 100 * corpus_bleu([[row] for row in words], words),
        "torchmetrics": 100 * float(bleu_score(texts, [[text] for text in texts])),
        "mean of sentence_bleu": sum(sacrebleu.sentence_bleu(text, [text]).score for text in texts) / len(texts),
    }
    print(name, {library: round(score, 2) for library, score in found.items()})
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
up to three words {'sacrebleu': 0.0, 'nltk': 0.0, 'torchmetrics': 0.0, 'mean of sentence_bleu': 100.0}
and one of four {'sacrebleu': 100.0, 'nltk': 62.23, 'torchmetrics': 100.0, 'mean of sentence_bleu': 100.0}
SEEN
