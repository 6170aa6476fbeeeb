#!/usr/bin/env bash
# A model that gives each text one and the same embedding reranks with an MRR of 1.0; a random one has 0.31.
#
# Guess: a collapsed model ranks by chance, or each tie counts as wrong: its MRR is that of a random model or less.
# Seen:  RerankingEvaluator puts the positives first and keeps the order of equal scores, so that a positive has rank
#        1. MAP of the same ranking is 0.1 and NDCG 0.45. InformationRetrievalEvaluator takes the corpus in its order:
#        where relevant texts come first, recall is 0.5 in place of 0.15. TripletEvaluator counts each tie as wrong.
# With:  sentence-transformers 6.2.0, transformers 5.24.0, torch 2.13.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
packages="sentence-transformers==6.2.0 transformers==5.24.0 torch==2.13.0 numpy==2.4.6"
"$folder/env/bin/pip" install -q $packages 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer import evaluation


class Embedding(torch.nn.Module):
    """A model whose embeddings of texts are all equal, or all drawn at random."""

    config_keys: list[str] = []

    def __init__(self, collapsed: bool) -> None:
        super().__init__()
        self.collapsed = collapsed

    def preprocess(self, texts: list[str], **options: object) -> dict[str, torch.Tensor]:
        return {"input_ids": torch.zeros(len(texts), 1, dtype=torch.long)}

    def forward(self, features: dict[str, torch.Tensor], **options: object) -> dict[str, torch.Tensor]:
        shape = (len(features["input_ids"]), 8)
        features["sentence_embedding"] = torch.ones(shape) if self.collapsed else torch.randn(shape)
        return features

    def get_embedding_dimension(self) -> int:
        return 8


samples = [
    {"query": f"query {row}", "positive": [f"right {row}"], "negative": [f"wrong {row} {place}" for place in range(9)]}
    for row in range(200)
]
queries, corpus = {str(row): f"query {row}" for row in range(20)}, {f"{row:03}": f"text {row}" for row in range(200)}
evaluators = {
    "reranking": evaluation.RerankingEvaluator(samples, show_progress_bar=False),
    "retrieval": evaluation.InformationRetrievalEvaluator(
        queries, corpus, {row: {f"{int(row):03}"} for row in queries}, accuracy_at_k=[10], precision_recall_at_k=[10]
    ),
    "triplet": evaluation.TripletEvaluator(*zip(*((s["query"], s["positive"][0], s["negative"][0]) for s in samples))),
}
for name, collapsed in (("equal", True), ("random", False)):
    torch.manual_seed(0)
    model = SentenceTransformer(modules=[Embedding(collapsed)], device="cpu")
    for kind, evaluator in evaluators.items():
        scores = {key.removeprefix("cosine_"): f"{score:.2f}" for key, score in evaluator(model).items()}
        wanted = ("mrr@10", "map", "ndcg@10", "recall@10", "accuracy")
        print(name, kind, "|", *(f"{key} {scores[key]}" for key in wanted if key in scores))
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
equal reranking | mrr@10 1.00 map 0.10 ndcg@10 0.45
equal retrieval | mrr@10 0.15 ndcg@10 0.23 recall@10 0.50
equal triplet | accuracy 0.00
random reranking | mrr@10 0.31 map 0.31 ndcg@10 0.47
random retrieval | mrr@10 0.06 ndcg@10 0.08 recall@10 0.15
random triplet | accuracy 0.50
SEEN
