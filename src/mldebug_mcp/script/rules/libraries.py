"""Does a library do with what it is given what the name says, where the script shows that it does not?"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from mldebug_mcp.script.calls import Call, constant_of, dotted, names_in
from mldebug_mcp.script.faults import Fault, fault
from mldebug_mcp.script.library import NO_GRADIENTS
from mldebug_mcp.script.roles import Roles

WITHOUT_FINDINGS = re.compile(
    r"healthy|lesion_?free|no_?(?:lesion|tumou?r|nodule)|empty_(?:mask|label)|negative_(?:case|image|slice|scan)", re.I
)
"""What names images on which there is nothing to find."""
SETS_THE_RATE = ("l2_leaf_reg", "leaf_estimation_iterations", "leaf_estimation_method")
"""Parameters of CatBoost that, once named, keep it from choosing a learning rate. Source: its documentation."""
WHOLE_STEPS = 1e-3
"""Learning rate of RAdam from which gradients of a sum move weights too far. Chosen: the rate that its paper uses."""


def empty_labels_left_out(roles: Roles) -> Iterator[Fault]:
    """Images without a label do not count in MONAI's Dice, and the script has such.

    Source: findings/monai_dice_leaves_out_healthy_images.sh.
    """
    found = WITHOUT_FINDINGS.search(roles.source)
    for call in roles.script.named("DiceMetric") if found and roles.is_imported_from("monai", "DiceMetric") else ():
        if "ignore_empty" not in call.keywords and found is not None:
            says = (
                f"images with an empty label do not count in it, whatever is found on them, and `{found[0]}` is named"
            )
            yield fault("empty_labels_left_out", call.line, "depends", says)


def observers_go_on(roles: Roles) -> Iterator[Fault]:
    """A model in quantization-aware training is evaluated between passes, and its observers learn from those rows.

    Source: findings/evaluation_moves_fake_quantization.sh.
    """
    prepared = roles.script.named("prepare_qat", "prepare_qat_fx", "prepare_qat_pt2e")
    if not prepared or re.search(r"disable_observer|observer_enabled|deepcopy", roles.source):
        return
    for call in roles.script.calls:
        inside = any(len(run.loops) > 1 and any(map(NO_GRADIENTS.search, run.guards)) for run in roles.runs(call))
        if inside and roles.calls_model(call.node) and call.order > prepared[0].order:
            says = (
                f"eval() and no_grad() do not stop the observers that {prepared[0].method}() put into the model: each "
                "evaluation moves the ranges of its quantization"
            )
            yield fault("observers_go_on", call.line, "depends", says, lines=(prepared[0].line,))
            return


def begins_with_whole_gradients(roles: Roles) -> Iterator[Fault]:
    """RAdam is given the gradients of a sum, and its first five steps are not divided by their size.

    Source: findings/radam_begins_with_whole_gradients.sh.
    """
    summed = re.search(r"reduction=['\"]sum['\"]", roles.source)
    limited = roles.uses("clip_grad") or roles.schedules
    for made in roles.optimizers.values() if summed and not limited and roles.trains_by_hand else ():
        call = roles.call_of(made.value) if isinstance(made.value, ast.Call) else None
        if call is None or call.method != "RAdam" or not roles.is_imported_from("torch", call.name.partition(".")[0]):
            continue
        rate = roles.number_of(given) if (given := call.argument("lr", 1)) is not None else WHOLE_STEPS
        if rate is not None and rate >= WHOLE_STEPS:
            says = "the loss is a sum, and the first five steps of RAdam are the learning rate times the whole gradient"
            yield fault("begins_with_whole_gradients", call.line, "depends", says)


def rate_no_longer_chosen(roles: Roles) -> Iterator[Fault]:
    """A parameter of CatBoost is named without a learning rate, which then does not follow rows and rounds.

    Source: findings/catboost_named_default_lowers_the_rate.sh.
    """
    for call in roles.script.calls:
        if not re.fullmatch(r"CatBoost(?:Classifier|Regressor)?", call.method):
            continue
        given = roles.keywords(call)
        if call.method == "CatBoost" and call.node.args:
            given |= dict.fromkeys(re.findall(r"'(\w{1,40})'", ast.unparse(call.node.args[0])), call.node)
        named = [name for name in SETS_THE_RATE if name in given]
        if named and not {"learning_rate", "eta"} & set(given):
            says = (
                f"{named[0]} is named, and so the learning rate is 0.03 for any number of rounds: CatBoost chooses one "
                "by rows and rounds only where this is left out"
            )
            yield fault("rate_no_longer_chosen", call.line, "depends", says)


def annotation_zero(roles: Roles) -> Iterator[Fault]:
    """Annotations that pycocotools evaluates are counted from 0, which stands there for no match.

    Source: findings/coco_annotation_number_zero.sh.
    """
    if not roles.uses("COCOeval"):
        return
    for node in ast.walk(roles.script.tree):
        if not isinstance(node, ast.Dict):
            continue
        entries = {
            constant_of(key): value for key, value in zip(node.keys, node.values, strict=True) if key is not None
        }
        is_annotation = {"id", "image_id"} <= set(entries) and bool({"bbox", "segmentation"} & set(entries))
        if is_annotation and "score" not in entries and _begins_at_zero(roles, entries["id"], node):
            says = "the first annotation has the id 0, which pycocotools takes for no match: what finds it is wrong"
            yield fault("annotation_zero", entries["id"].lineno, "certain", says)


def _begins_at_zero(roles: Roles, node: ast.expr, around: ast.Dict) -> bool:
    """Say whether a number is 0 in the first round: the length of a list before it grows, or a counter."""
    if isinstance(node, ast.Call) and dotted(node.func) == "len" and node.args:
        grows = f"{dotted(node.args[0])}.append"
        return any(call.name == grows and around in call.node.args for call in roles.script.calls)
    if not isinstance(node, ast.Name):
        return constant_of(node) == 0
    loops = [loop for loop in ast.walk(roles.script.tree) if isinstance(loop, ast.For) and around in ast.walk(loop)]
    for loop in loops:
        first = loop.target.elts[0] if isinstance(loop.target, ast.Tuple) and loop.target.elts else loop.target
        counts = loop.iter if isinstance(loop.iter, ast.Call) and len(loop.iter.args) == 1 else None
        if node.id in names_in(loop.target):
            counted = counts is not None and not counts.keywords and dotted(counts.func) in ("enumerate", "range")
            return counted and dotted(first) == node.id
    made = [each for each in roles.script.assignments if each.target == node.id]
    plain, added = [each for each in made if not each.adds], [each for each in made if each.adds]
    later = added and all(each.line > around.lineno for each in added)
    return bool(later) and len(plain) == 1 and constant_of(plain[0].value) == 0


def target_moved_on(roles: Roles) -> Iterator[Fault]:
    """A target of graphs has "index" in its name, and so the nodes of the graphs before are added to it.

    Source: findings/graph_batches_shift_targets_named_index.sh.
    """
    if "torch_geometric" not in roles.source or "__inc__" in roles.definitions:
        return
    for call in roles.script.named("Data", "HeteroData"):
        for name in call.keywords:
            compared = _is_target(roles, name) if "index" in name and "edge" not in name else None
            if compared is not None:
                says = (
                    f'{name} has "index" in its name: in a batch the number of nodes of the graphs before is added to '
                    f"it, and line {compared.line} takes it for a target"
                )
                yield fault("target_moved_on", call.line, "likely", says, lines=(compared.line,))


def _is_target(roles: Roles, name: str) -> Call | None:
    """Return the call of a loss that takes an attribute of this name for its targets."""
    for call in roles.script.calls:
        target = call.argument("target", 1)
        is_loss = re.search(r"loss|criterion|entropy", call.name, re.IGNORECASE)
        if is_loss and isinstance(target, ast.Attribute) and target.attr == name:
            return call
    return None


def steps_of_each_optimizer(roles: Roles) -> Iterator[Fault]:
    """A Lightning module steps two optimizers itself, and its steps are bounded: each of the two counts.

    Source: findings/lightning_counts_each_optimizer.sh.
    """
    module = re.search(r"automatic_optimization = False", roles.source)
    steps = {step.owner for step in roles.script.named("step") if step.function.endswith(".training_step")}
    optimizers = {
        made.target: made
        for made in roles.script.assignments
        if made.place is not None and isinstance(made.value, ast.Call) and dotted(made.value.func) == "self.optimizers"
    }
    both = sorted(steps & set(optimizers))
    for call in roles.script.named("Trainer") if module and len(both) > 1 else ():
        bound = roles.number_of(given) if (given := call.keywords.get("max_steps")) is not None else None
        if bound is not None and bound > 0:
            says = (
                f"max_steps={bound:g} counts the steps of {' and '.join(both)} together: {bound / len(both):g} batches"
            )
            yield fault("steps_of_each_optimizer", call.line, "depends", says, lines=(optimizers[both[0]].line,))


def logits_by_the_batch(roles: Roles) -> Iterator[Fault]:
    """A metric of torchmetrics is given logits, and decides batch by batch whether they are probabilities.

    Source: findings/torchmetrics_logits_by_the_batch.sh.
    """
    if "torchmetrics" not in roles.source or not roles.uses("BCEWithLogits", "cross_entropy_with_logits"):
        return
    metrics = {made.target for made in roles.script.assignments if _is_binary(made.value)}
    for call in roles.script.calls:
        owner = call.owner if call.method == "update" else call.name
        if owner not in metrics or not call.loops or not call.node.args:
            continue
        outputs = roles.source_of(call.node.args[0], call)
        by_model = any(roles.calls_model(part) for part in ast.walk(outputs) if isinstance(part, ast.Call))
        if by_model and not re.search(r"sigmoid|prob|[<>]|round", ast.unparse(outputs)):
            says = (
                f"{owner} is given logits, and cuts a batch whose logits all lie between 0 and 1 at 0.5, as it takes "
                "them for probabilities"
            )
            yield fault("logits_by_the_batch", call.line, "depends", says)
            return


def _is_binary(node: ast.expr) -> bool:
    """Say whether a value is a metric of two classes that takes logits or probabilities."""
    name = dotted(node).rpartition(".")[2]
    if not isinstance(node, ast.Call) or not re.search(
        r"AUROC|Accuracy|AveragePrecision|F1Score|Precision|Recall", name
    ):
        return False
    tasks = {constant_of(keyword.value) for keyword in node.keywords if keyword.arg == "task"}
    return name.startswith(("Binary", "Multilabel")) or bool(tasks & {"binary", "multilabel"})


def negative_labels_counted(roles: Roles) -> Iterator[Fault]:
    """Places are marked by a negative label for Optax, which takes it for a class or pushes all classes down.

    Source: findings/labels_outside_of_the_classes.sh.
    """
    for mean in roles.script.named("mean"):
        owner = mean.node.func.value if isinstance(mean.node.func, ast.Attribute) else None
        given = mean.node.args[0] if mean.node.args else owner
        losses = roles.source_of(given, mean) if given is not None else None
        call = roles.call_of(losses) if isinstance(losses, ast.Call) else None
        if call is None or call.method != "softmax_cross_entropy_with_integer_labels":
            continue
        labels = call.argument("labels", 1)
        made = roles.spelled_out(labels) if labels is not None else None
        chosen = made.args if isinstance(made, ast.Call) and dotted(made.func).endswith("where") else []
        marks = [mark for part in chosen if isinstance(mark := constant_of(part), int) and mark < 0]
        if marks and not {"where"} & {*mean.keywords, *call.keywords}:
            says = f"labels of {marks[0]} count in the mean: {call.name}() has no label that it leaves out"
            yield fault("negative_labels_counted", call.line, "likely", says)


def alphabet_of_a_sample(roles: Roles) -> Iterator[Fault]:
    """A byte-level tokenizer is trained without the alphabet of bytes: what its sample lacks has no token.

    Source: findings/byte_level_tokenizers_drop_unseen_digits.sh.
    """
    of_bytes = roles.script.named("ByteLevel") and roles.is_imported_from("tokenizers", "ByteLevel")
    for call in roles.script.named("BpeTrainer") if of_bytes else ():
        spread = any(keyword.arg is None for keyword in call.node.keywords)
        if "initial_alphabet" not in call.keywords and not spread and "alphabet" not in roles.source:
            says = (
                "only bytes that are in the sample get a token: digits and letters that it lacks are left out of texts"
            )
            yield fault("alphabet_of_a_sample", call.line, "depends", says)
