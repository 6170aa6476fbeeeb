#!/usr/bin/env bash
# A sequence of 100 letters has some 36 WordPiece tokens, and one of 101 a single `[UNK]`: all such rows are the same.
#
# Guess: a tokenizer that was trained on long words, all of letters that it knows, splits them into pieces.
# Seen:  `WordPiece` gives up at words of more than 100 letters, whatever it was trained on: the trainer learns pieces
#        from such words and says nothing, and the tokenizer then has one unknown token for each. Proteins, DNA, URLs
#        and scripts without spaces are such words. A model of such rows sees no input: a classifier stays at chance,
#        and a masked model is at once sure of `[UNK]`, with a loss near 0. BPE and Unigram split the same rows.
#        `max_input_chars_per_word` lifts the limit.
# With:  tokenizers 0.23.3
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q tokenizers==0.23.3 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import random

from tokenizers import Tokenizer, models, pre_tokenizers, trainers

draw = random.Random(0)
lengths = (99, 100, 101, 400)
rows = ["".join(draw.choice("ACGT") for _ in range(length)) for length in lengths * 50]
options = {"vocab_size": 100, "special_tokens": ["[UNK]"], "show_progress": False}
unigram = {**options, "unk_token": "[UNK]"}
for name, model, trainer in (
    ("WordPiece", models.WordPiece(unk_token="[UNK]"), trainers.WordPieceTrainer(**options)),
    (
        "WordPiece of up to 1,000",
        models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=1000),
        trainers.WordPieceTrainer(**options),
    ),
    ("BPE", models.BPE(unk_token="[UNK]"), trainers.BpeTrainer(**options)),
    ("Unigram", models.Unigram(), trainers.UnigramTrainer(**unigram)),
):
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.train_from_iterator(rows, trainer)
    for length in lengths:
        found = [tokenizer.encode(row).tokens for row in rows if len(row) == length]
        kinds = len({tuple(row) for row in found})
        mean = sum(map(len, found)) / len(found)
        unknown = sum(row.count("[UNK]") for row in found)
        print(f"{name}, {length} letters | {mean:.0f} tokens, {unknown / sum(map(len, found)):.0%} unknown", end=" | ")
        print(f"{kinds} different rows of 50")
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
WordPiece, 99 letters | 35 tokens, 0% unknown | 50 different rows of 50
WordPiece, 100 letters | 36 tokens, 0% unknown | 50 different rows of 50
WordPiece, 101 letters | 1 tokens, 100% unknown | 1 different rows of 50
WordPiece, 400 letters | 1 tokens, 100% unknown | 1 different rows of 50
WordPiece of up to 1,000, 99 letters | 35 tokens, 0% unknown | 50 different rows of 50
WordPiece of up to 1,000, 100 letters | 36 tokens, 0% unknown | 50 different rows of 50
WordPiece of up to 1,000, 101 letters | 36 tokens, 0% unknown | 50 different rows of 50
WordPiece of up to 1,000, 400 letters | 141 tokens, 0% unknown | 50 different rows of 50
BPE, 99 letters | 35 tokens, 0% unknown | 50 different rows of 50
BPE, 100 letters | 35 tokens, 0% unknown | 50 different rows of 50
BPE, 101 letters | 35 tokens, 0% unknown | 50 different rows of 50
BPE, 400 letters | 139 tokens, 0% unknown | 50 different rows of 50
Unigram, 99 letters | 34 tokens, 0% unknown | 50 different rows of 50
Unigram, 100 letters | 34 tokens, 0% unknown | 50 different rows of 50
Unigram, 101 letters | 34 tokens, 0% unknown | 50 different rows of 50
Unigram, 400 letters | 134 tokens, 0% unknown | 50 different rows of 50
SEEN
