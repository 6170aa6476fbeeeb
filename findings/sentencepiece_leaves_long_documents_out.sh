#!/usr/bin/env bash
# SentencePiece learns nothing of documents longer than 4,192 bytes: 41 percent of their tokens are unknown after it.
#
# Guess: each row of the corpus counts for the vocabulary, or a long one is cut to what fits.
# Seen:  a row over `max_sentence_length` is left out whole. A corpus of one document a row is so learnt from its short
#        ones. The hint is among sixty lines of log. Rows also lose their line breaks and indents: by default each run
#        of blanks becomes one space.
# With:  sentencepiece 0.2.3
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q sentencepiece==0.2.3 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import io

import sentencepiece

short = ["the cat sat on the mat today"] * 400
for words in (100, 120):
    document = "quixotic zebra jumps over vexing wizards " * words
    for options in ({}, {"max_sentence_length": 10000}):
        rows, model = iter(short + [document] * 400), io.BytesIO()
        options |= {"vocab_size": 40, "model_type": "bpe"}
        sentencepiece.SentencePieceTrainer.train(sentence_iterator=rows, model_writer=model, **options)
        tokenizer = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
        tokens = tokenizer.encode(document)
        unknown = tokens.count(tokenizer.unk_id()) / len(tokens)
        limit = options.get("max_sentence_length", "as it is")
        print(f"documents of {len(document):,} bytes, limit {limit} | unknown {unknown:.0%}")
print(repr(tokenizer.decode(tokenizer.encode("the cat\n\n    sat"))))
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
documents of 4,100 bytes, limit as it is | unknown 0%
documents of 4,100 bytes, limit 10000 | unknown 0%
documents of 4,920 bytes, limit as it is | unknown 41%
documents of 4,920 bytes, limit 10000 | unknown 0%
'the cat sat'
SEEN
