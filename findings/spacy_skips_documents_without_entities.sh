#!/usr/bin/env bash
# A spaCy model that finds two entities in each document without any has a precision of 1.0, and never learns better.
#
# Guess: a document without entities is one where each entity found is wrong; that is what such rows are there for.
# Seen:  a new document does not have no entities: its entities are unknown, until `doc.ents` is set, be it to an empty
#        list. Where a converter sets them for documents that have some, the others are left out of the score, and have
#        a loss of 0 in training: F1 is 1.00 where it is 0.33. A file of a DocBin keeps the difference, and
#        both kinds print `()`. `Example.from_dict` with {"entities": []} counts, with {} it does not.
# With:  spacy 3.8.18, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q spacy==3.8.18 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import spacy
from spacy.scorer import Scorer
from spacy.tokens import Doc, DocBin, Span
from spacy.training import Example

nlp = spacy.blank("en")
words = ["we", "saw", "Paris", "today"]


def document(*places):
    doc = Doc(nlp.vocab, words=words)
    doc.ents = [Span(doc, place, place + 1, label="PLACE") for place in places]
    return doc


plain, empty = Doc(nlp.vocab, words=words), Doc(nlp.vocab, words=words)
empty.ents = []
kinds = {
    "new": plain,
    "new, from a DocBin": next(DocBin(docs=[plain]).get_docs(nlp.vocab)),
    "ents = []": empty,
    "ents = [], from a DocBin": next(DocBin(docs=[empty]).get_docs(nlp.vocab)),
    "from_dict, {}": Example.from_dict(nlp.make_doc(" ".join(words)), {}).reference,
    "from_dict, entities []": Example.from_dict(nlp.make_doc(" ".join(words)), {"entities": []}).reference,
}
for name, doc in kinds.items():
    rows = [Example(document(2), document(2)), *[Example(document(0, 2), doc) for _ in range(2)]]
    scores = Scorer().score(rows)
    trained = spacy.blank("en")
    trained.add_pipe("ner").add_label("PLACE")
    trained.initialize()
    losses = trained.update([Example(trained.make_doc(" ".join(words)), doc)])
    print(f"{name} | ents {doc.ents} | precision {scores['ents_p']:.2f} F1 {scores['ents_f']:.2f}", end="")
    print(" | loss in training", "0" if losses["ner"] == 0 else "above 0")
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
new | ents () | precision 1.00 F1 1.00 | loss in training 0
new, from a DocBin | ents () | precision 1.00 F1 1.00 | loss in training 0
ents = [] | ents () | precision 0.20 F1 0.33 | loss in training above 0
ents = [], from a DocBin | ents () | precision 0.20 F1 0.33 | loss in training above 0
from_dict, {} | ents () | precision 1.00 F1 1.00 | loss in training 0
from_dict, entities [] | ents () | precision 0.20 F1 0.33 | loss in training above 0
SEEN
