#!/usr/bin/env bash
# Embeddings that PEFT counts as trainable get no gradient, and `modules_to_save=["norm"]` trains nine norms, not one.
#
# Guess: a name in `modules_to_save` is that of a module, as in `target_modules`: "norm" is the last norm, "classifier"
#        is not "pre_classifier", and "embeddings" is the block of that name.
# Seen:  each module whose name ends in these letters is copied and trained, without a dot before them. "norm" takes
#        `input_layernorm` and `q_norm` of each layer, "classifier" the layer before it. "embeddings" takes BERT's
#        block and, once more, the `word_embeddings` in it: the copy of the block is used, and what is in the other
#        copies is trainable, is counted and never gets a gradient. The loss of such a run hardly falls, 0.694 to 0.687,
#        where "bert.embeddings" reaches 0.651. The adapter is saved, and cannot be loaded again.
# With:  peft 0.21.2, transformers 5.24.0, torch 2.13.0, numpy 2.4.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q peft==0.21.2 transformers==5.24.0 torch==2.13.0 numpy==2.4.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import torch
import transformers
from peft import LoraConfig, PeftModel, get_peft_model

narrow = {"num_hidden_layers": 2, "num_attention_heads": 2, "hidden_size": 32, "intermediate_size": 64}
bert = transformers.BertConfig(
    vocab_size=64, hidden_dropout_prob=0, attention_probs_dropout_prob=0, **{**narrow, "num_hidden_layers": 1}
)
makers = {
    "Qwen3": lambda: transformers.Qwen3ForCausalLM(
        transformers.Qwen3Config(vocab_size=64, num_key_value_heads=2, head_dim=16, **narrow)
    ),
    "DistilBERT": lambda: transformers.DistilBertForSequenceClassification(
        transformers.DistilBertConfig(vocab_size=64, dim=32, n_layers=2, n_heads=2, hidden_dim=64)
    ),
    "BERT": lambda: transformers.BertForSequenceClassification(bert),
}


def adapted(name, target, saved):
    """Return a model with LoRA at a target, in which the modules of a name are trained whole."""
    torch.manual_seed(0)
    return get_peft_model(makers[name](), LoraConfig(target_modules=[target], modules_to_save=[saved]))


for name, target, saved in (
    ("Qwen3", "q_proj", "norm"),
    ("Qwen3", "q_proj", "model.norm"),
    ("DistilBERT", "q_lin", "classifier"),
):
    model = adapted(name, target, saved)
    whole = {
        part.split(".modules_to_save")[0].removeprefix("base_model.model.")
        for part, weight in model.named_parameters()
        if weight.requires_grad and "lora" not in part
    }
    print(f"{name}, {saved}: {len(whole)} modules,", *sorted(part for part in whole if ".layers.1" not in part))

rows, labels = torch.randint(0, 64, (8, 10), generator=torch.Generator().manual_seed(0)), torch.arange(8) % 2
for saved in ("embeddings", "bert.embeddings"):
    model = adapted("BERT", "query", saved)
    trained = [weight for weight in model.parameters() if weight.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=0.01)
    losses = []
    for _ in range(60):
        losses.append(model(input_ids=rows, labels=labels).loss)
        optimizer.zero_grad()
        losses[-1].backward()
        optimizer.step()
    count = sum(weight.numel() for weight in trained if weight.grad is not None)
    print(f"BERT, {saved}: {model.get_nb_trainable_parameters()[0]} trainable, {count} with a gradient, loss", end=" ")
    print(f"{losses[0].item():.3f} to {losses[-1].item():.3f}", end=", ")
    model.save_pretrained(saved)
    try:
        PeftModel.from_pretrained(makers["BERT"](), saved)
        print("loaded again")
    except KeyError:
        print("KeyError as it is loaded")
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
Qwen3, norm: 9 modules, model.layers.0.input_layernorm model.layers.0.post_attention_layernorm model.layers.0.self_attn.k_norm model.layers.0.self_attn.q_norm model.norm
Qwen3, model.norm: 1 modules, model.norm
DistilBERT, classifier: 2 modules, classifier pre_classifier
BERT, embeddings: 19072 trainable, 576 with a gradient, loss 0.694 to 0.687, KeyError as it is loaded
BERT, bert.embeddings: 19072 trainable, 19072 with a gradient, loss 0.694 to 0.651, loaded again
SEEN
