#!/usr/bin/env bash
# Sentence Transformers logs a loss of exactly 0.0 at the end of each epoch, as half of its pairs answer "yes".
#
# Guess: `batch_sampler="no_duplicates"` spreads equal texts over the batches of an epoch. Batches stay full but for the
#        last, and an epoch sees each row once.
# Seen:  the first batches are filled with all that differs. What is left is "yes" with "yes", so each later batch is
#        one row: with no other text to tell it from, its loss and gradient are 0. An epoch counts 8 steps, though 256
#        batches would be due: of 512 rows it sees 264.
# With:  sentence-transformers 6.2.0, transformers 5.24.0, torch 2.13.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q sentence-transformers==6.2.0 transformers==5.24.0 accelerate==1.15.0 \
    datasets==5.2.0 torch==2.13.0 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | grep " | " | tee seen.txt
import torch
from datasets import Dataset
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from tokenizers import Tokenizer, models, pre_tokenizers

rows = [{"anchor": f"question{row}", "positive": "yes" if row % 2 else f"answer{row}"} for row in range(512)]
words = dict.fromkeys(["[UNK]", *(text for row in rows for text in row.values())])
tokenizer = Tokenizer(models.WordLevel({word: number for number, word in enumerate(words)}, unk_token="[UNK]"))
tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()


class Counted(MultipleNegativesRankingLoss):
    """Keep the sizes of the batches."""

    def forward(self, features: list[dict], labels: torch.Tensor) -> torch.Tensor:
        """Count the rows of a batch."""
        sizes.append(len(features[0]["offsets"]))
        return super().forward(features, labels)


for sampler in ("batch_sampler", "no_duplicates"):
    sizes = []
    model = SentenceTransformer(modules=[StaticEmbedding(tokenizer, embedding_dim=32)], device="cpu")
    options = {"batch_sampler": sampler, "per_device_train_batch_size": 64, "num_train_epochs": 2, "logging_steps": 1}
    arguments = SentenceTransformerTrainingArguments("out", **options, save_strategy="no", report_to=[], use_cpu=True)
    trainer = SentenceTransformerTrainer(model, arguments, Dataset.from_list(rows), loss=Counted(model))
    trainer.train()
    *records, last = trainer.state.log_history
    zeros = [record["step"] for record in records if record["loss"] == 0]
    print(sampler, "| rows of each step", *sizes[:8], "| rows", sum(sizes), end=" | ")
    print("epoch", last["epoch"], "| loss of 0 at steps", *zeros)
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
batch_sampler | rows of each step 64 64 64 64 64 64 64 64 | rows 1024 | epoch 2.0 | loss of 0 at steps
no_duplicates | rows of each step 64 64 64 64 5 1 1 1 | rows 528 | epoch 2.0 | loss of 0 at steps 6 7 8 14 15 16
SEEN
