#!/usr/bin/env bash
# A tokenizer that transformers saves keeps the truncation and padding of its last call, for all who use `tokenizers`.
#
# Guess: `truncation=True, max_length=2` counts for the call; tokenizer.json holds what was set for the tokenizer.
# Seen:  the last call before `save_pretrained` decides. `Tokenizer.from_file` then cuts each text to 2 tokens and pads
#        shorter ones, without a word. `AutoTokenizer` sets both anew in each call, so that it shows nothing of this.
# With:  transformers 5.24.0, tokenizers 0.23.3
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q transformers==5.24.0 tokenizers==0.23.3 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import AutoTokenizer, PreTrainedTokenizerFast

words = {word: number for number, word in enumerate(["<pad>", "<unk>", "a", "b", "c", "d"])}
made = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
made.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=made, pad_token="<pad>", unk_token="<unk>")
for name, options in {
    "plain": {},
    "truncating": {"truncation": True, "max_length": 2, "padding": "max_length"},
}.items():
    tokenizer("a b c d", **options)
    tokenizer.save_pretrained(name)
    loaded = Tokenizer.from_file(f"{name}/tokenizer.json")
    print(name, "last call | tokenizers", loaded.encode("a b c d").ids, loaded.encode("a").ids, end=" ")
    print("| transformers", AutoTokenizer.from_pretrained(name)("a b c d").input_ids)
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
plain last call | tokenizers [2, 3, 4, 5] [2] | transformers [2, 3, 4, 5]
truncating last call | tokenizers [2, 3] [2, 0] | transformers [2, 3, 4, 5]
SEEN
