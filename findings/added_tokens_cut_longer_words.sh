#!/usr/bin/env bash
# One word that is added to a tokenizer cuts all longer words that hold it: "cat" leaves "concatenate" in pieces.
#
# Guess: `add_tokens(["cat"])` gives the word "cat" a token, and all other words keep theirs.
# Seen:  an added token is cut out of the text before all else, within words, too. " category" was one token and is
#        four, so a model meets words that it knew as pieces, and the loss on text of before rises. With
#        `single_word=True` they stay whole. " cat" itself, which was one token, is two in both cases: its space stands
#        alone.
# With:  tokenizers 0.23.3
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q tokenizers==0.23.3 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers, trainers

TEXT = "concatenate the category"
for name, added in {
    "before": None,
    "added": AddedToken("cat"),
    "added as single word": AddedToken("cat", single_word=True),
}.items():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=400, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator([TEXT, "the cat"] * 50, trainer)
    if added:
        tokenizer.add_tokens([added])
    for text in (TEXT, "the cat"):
        print(name, "|", *(token.replace(chr(288), "_") for token in tokenizer.encode(text).tokens))
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
before | concatenate _the _category
before | the _cat
added | co n cat enate _the _ cat eg ory
added | the _ cat
added as single word | concatenate _the _category
added as single word | the _ cat
SEEN
