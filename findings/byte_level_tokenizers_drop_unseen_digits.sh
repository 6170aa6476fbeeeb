#!/usr/bin/env bash
# A byte-level tokenizer that is trained on a sample without some digits deletes them from each text, without a word.
#
# Guess: byte-level BPE has no unknown text: it falls back to single bytes, so that decoding gives the text again.
# Seen:  with `tokenizers`, the trainer's alphabet is the bytes of its sample alone. A byte that is not in it has no
#        token, and is left out: "5987 dollars" becomes " dollars". Only a model that was given an `unk_token` counts
#        such bytes. With `initial_alphabet=ByteLevel.alphabet()` the text comes back whole.
# With:  tokenizers 0.23.3
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q tokenizers==0.23.3 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

sample = ["the cost was 12 dollars in may of 2011", "a sum of 30 dollars"] * 50
text = "in May of 2011, a sum of 5987 dollars"
for name, options in {
    "plain": {},
    "with unk_token": {"special_tokens": ["[UNK]"]},
    "with the alphabet": {"initial_alphabet": pre_tokenizers.ByteLevel.alphabet()},
}.items():
    tokenizer = Tokenizer(models.BPE(unk_token="[UNK]") if "unk" in name else models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(sample, trainers.BpeTrainer(vocab_size=300, show_progress=False, **options))
    encoded = tokenizer.encode(text)
    print(name, "|", repr(tokenizer.decode(encoded.ids)), "unknown", encoded.tokens.count("[UNK]"))
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
plain | 'in ay of 2011 a sum of  dollars' unknown 0
with unk_token | 'in ay of 2011 a sum of  dollars' unknown 6
with the alphabet | 'in May of 2011, a sum of 5987 dollars' unknown 0
SEEN
