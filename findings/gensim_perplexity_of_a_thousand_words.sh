#!/usr/bin/env bash
# The perplexity that gensim logs for an LDA model is 123 where it is 1,039: its bound is in nats, and 2 is its base.
#
# Guess: "perplexity estimate" in gensim's log is that of the held-out documents, as scikit-learn's `perplexity` is;
#        and `log_perplexity` is its logarithm.
# Seen:  `log_perplexity` is the bound per word, which is the negative logarithm, to the base e. The log raises 2, not
#        e, to it. Of 1,000 words that are equally frequent the bound is -6.946, and 2**6.946 is 123.
# With:  gensim 4.4.0, scikit-learn 1.9.1
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q gensim==4.4.0 scikit-learn==1.9.1 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>log.txt <<'PYTHON' | tee seen.txt
import logging

import gensim.models
import numpy
import sklearn.decomposition

draw = numpy.random.default_rng(0)
documents = [draw.permutation(1000)[:200] for _ in range(200)]
counts = numpy.zeros((200, 1000))
for row, words in zip(counts, documents):
    row[words] = 1
other = sklearn.decomposition.LatentDirichletAllocation(1, random_state=0).fit(counts)
print("scikit-learn", round(other.perplexity(counts)))

logging.basicConfig(level=logging.INFO)
corpus = [[(int(word), 1) for word in words] for words in documents]
names = {word: str(word) for word in range(1000)}
model = gensim.models.LdaModel(corpus, id2word=names, num_topics=1, passes=2, random_state=0)
bound = model.log_perplexity(corpus)
print("gensim's log_perplexity", round(bound, 3), "| e to it", round(numpy.exp(-bound)), "| 2 to it", round(2**-bound))
PYTHON
grep -o "[-0-9.]* per-word bound, [0-9.]* perplexity estimate" log.txt | tail -n 1 | tee -a seen.txt
diff seen.txt - <<'SEEN' && echo "as found"
scikit-learn 1039
gensim's log_perplexity -6.946 | e to it 1039 | 2 to it 123
-6.946 per-word bound, 123.3 perplexity estimate
SEEN
