#!/usr/bin/env bash
# A tokenizer that was trained with BPE dropout cuts each text another way each time, in evaluation and after saving.
#
# Guess: dropout of merges is for training alone, as in a model: it ends with evaluation, or with the saved file.
# Seen:  a tokenizer has no mode. One text of 3 tokens has more than six counts in 300 calls, so that the loss of one
#        model on one text differs by the call, and a perplexity per token has another base. The rate stands in
#        tokenizer.json, so whoever loads it draws on. `tokenizer.model.dropout = None` ends it.
# With:  tokenizers 0.23.3
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q tokenizers==0.23.3 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

TEXT = "concatenate the categories"
tokenizer = Tokenizer(models.BPE(dropout=0.1))
tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel()
trainer = trainers.BpeTrainer(vocab_size=400, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
tokenizer.train_from_iterator([TEXT] * 50, trainer)
tokenizer.save("tokenizer.json")
loaded, ended = Tokenizer.from_file("tokenizer.json"), Tokenizer.from_file("tokenizer.json")
ended.model.dropout = None
for name, each in {"trained": tokenizer, "loaded": loaded, "ended": ended}.items():
    counts = {len(each.encode(TEXT).ids) for _ in range(300)}
    dropout = each.model.dropout and round(each.model.dropout, 3)
    print(name, "| dropout", dropout, "| least count", min(counts), "| more than six counts", len(counts) > 6)
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
trained | dropout 0.1 | least count 3 | more than six counts True
loaded | dropout 0.1 | least count 3 | more than six counts True
ended | dropout None | least count 3 | more than six counts False
SEEN
