#!/usr/bin/env bash
# A collator that pads cannot hide whole words of rows of unequal length: it does not pad the offsets that it asks for.
#
# Guess: DataCollatorForLanguageModeling(whole_word_mask=True) pads rows as it does without that setting, where each
#        row has its `offset_mapping`, which the setting needs.
# Seen:  the tokenizer's padding leaves `offset_mapping` as it is. Rows of one length work; rows of unequal length, and
#        rows without offsets, raise an IndexError about array dimensions. Rows must be padded before the collator.
# With:  transformers 5.23.0, tokenizers 0.23.3
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q transformers==5.23.0 tokenizers==0.23.3 2>/dev/null
cd "$folder"
env/bin/python 2>/dev/null - <<'PYTHON' | tee seen.txt
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import DataCollatorForLanguageModeling, PreTrainedTokenizerFast

fast = Tokenizer(models.WordLevel({"[PAD]": 0, "[UNK]": 1, "[MASK]": 2, "a": 3, "b": 4, "c": 5}, unk_token="[UNK]"))
fast.pre_tokenizer = pre_tokenizers.Whitespace()
names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "mask_token": "[MASK]"}
tokenizer = PreTrainedTokenizerFast(tokenizer_object=fast, **names)


def collated(texts, whole, offsets):
    rows = [dict(tokenizer(text, return_offsets_mapping=offsets)) for text in texts]
    collate = DataCollatorForLanguageModeling(tokenizer, whole_word_mask=whole, return_tensors="np")
    try:
        return collate(rows)["input_ids"].shape
    except (IndexError, ValueError) as error:
        return f"{type(error).__name__}: {error}"


print("single tokens, unequal rows:", collated(["a b c", "b c"], False, False))
print("whole words, equal rows:", collated(["a b c", "b c a"], True, True))
print("whole words, unequal rows:", collated(["a b c", "b c"], True, True))
print("whole words, without offsets:", collated(["a b c", "b c a"], True, False))
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
single tokens, unequal rows: (2, 3)
whole words, equal rows: (2, 3)
whole words, unequal rows: IndexError: too many indices for array: array is 1-dimensional, but 3 were indexed
whole words, without offsets: IndexError: too many indices for array: array is 0-dimensional, but 3 were indexed
SEEN
