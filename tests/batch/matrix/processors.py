"""Batches of image processors, with faults and without.

The processors are those of Transformers, with their default settings, and targets as torchvision's detectors take them.
The batches are made on the spot; nothing is downloaded. FAULTS says for each fault which checks are right, HEALTHY what
must be left alone. Both tables were written before the tool was asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from tests.batch.matrix import Sample
from torch import Tensor

Picture = npt.NDArray[np.uint8]
ROWS = 8
CLASSES = 5
PAD, EOS, IMAGE, VISION_START, VISION_END = 0, 1, 4, 5, 6
VOID = 255
SMALL: dict[str, Any] = {"size": {"height": 32, "width": 32}}
CROPPED: dict[str, Any] = {"size": {"shortest_edge": 32}, "crop_size": {"height": 32, "width": 32}}
MEAN, DEVIATION = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


def photographs(height: int = 96, width: int = 128, *, seed: int = 5, rows: int = ROWS) -> list[Picture]:
    """Return smooth coloured pictures with some grain, 0 to 255, height by width by channels."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(rows):
        coarse = rng.integers(0, 256, (height // 16, width // 16, 3)) * np.array([1.0, 0.9, 0.8])
        smooth = np.kron(coarse, np.ones((16, 16, 1)))
        found.append(np.clip(smooth + rng.normal(0, 6, smooth.shape), 0, 255).astype(np.uint8))
    return found


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def processor(name: str, **settings: Any) -> Any:
    import transformers

    return getattr(transformers, f"{name}ImageProcessorPil")(**settings)


def vit(**settings: Any) -> Any:
    return processor("ViT", **SMALL | settings)


def clip(**settings: Any) -> Any:
    return processor("CLIP", **CROPPED | settings)


def siglip() -> Any:
    return processor("Siglip", **SMALL)


def convnext(**settings: Any) -> Any:
    return processor("ConvNext", size={"shortest_edge": 32}, crop_pct=1.0, **settings)


def model(kind: str, architecture: str, **settings: Any) -> dict[str, Any]:
    labels = {str(number): f"LABEL_{number}" for number in range(CLASSES)}
    return {"model_type": kind, "architectures": [architecture], "id2label": labels} | settings


VIT = model("vit", "ViTForImageClassification", image_size=32, num_channels=3, patch_size=8)
CLIP = model("clip", "CLIPForImageClassification", vision_config={"image_size": 32, "patch_size": 8})
CONVNEXT = model("convnext", "ConvNextForImageClassification", num_channels=3)
SIGLIP = model("siglip", "SiglipForImageClassification", vision_config={"image_size": 32, "patch_size": 8})


def made(batch: dict[str, Any], config: dict[str, Any] | None = None, prepare: Any = None) -> Sample:
    """Return a batch, the model that it is for, and the processor of that model."""
    return Sample("images", "", (), batch, model=config, processor=prepare)


# --- classes of images ------------------------------------------------------------------------------------------------


def classified(prepare: Any, pictures: Sequence[Any] = (), **changes: Any) -> dict[str, Any]:
    """Return a batch of a processor with a class for each picture."""
    pictures = list(pictures) or photographs()
    pixels = prepare(pictures, return_tensors="pt", **changes)["pixel_values"]
    return {"pixel_values": pixels, "labels": torch.arange(len(pictures)) % CLASSES}


def of_vit(change: Callable[[dict[str, Any]], dict[str, Any]] = dict, pictures: Any = ()) -> Sample:
    """Return a batch of ViT's processor, some columns of which are changed."""
    batch = classified(vit(), pictures)
    return made({**batch, **change(batch)}, VIT, vit())


def twice(prepare: Callable[..., Any]) -> dict[str, Any]:
    """Return a batch that a processor has normalised twice."""
    once = classified(prepare())["pixel_values"]
    return classified(prepare(do_resize=False, do_rescale=False), list(once))


def rescaled_twice() -> Sample:
    shares = [torch.tensor(picture).permute(2, 0, 1) / 255 for picture in photographs(32, 32)]
    return made(classified(clip(do_resize=False), shares), CLIP, clip())


def some_pictures_blank() -> Sample:
    pictures = [np.zeros_like(one) if place in (1, 4, 6) else one for place, one in enumerate(photographs())]
    return made(classified(siglip(), pictures), SIGLIP, siglip())


def the_same_pictures_again() -> Sample:
    pictures = photographs()
    batch = classified(clip(), [*pictures[:3], *pictures[:3], *pictures[:2]])
    return made(batch | {"labels": torch.tensor([0, 1, 2, 0, 1, 2, 0, 1])}, CLIP, clip())


def not_a_number() -> Sample:
    sample = of_vit()
    sample.batch["pixel_values"][2, 0, 3, 3] = float("nan")
    return sample


def products_on_white() -> Sample:
    pictures = photographs()
    for picture in pictures:
        picture[:20], picture[-20:], picture[:, :30], picture[:, -30:] = VOID, VOID, VOID, VOID
    return of_vit(pictures=pictures)


def grey_photographs() -> Sample:
    pictures = [np.repeat(picture.mean(2, keepdims=True).astype(np.uint8), 3, 2) for picture in photographs()]
    return made(classified(clip(), pictures), CLIP, clip())


def mixed_up(batch: dict[str, Any]) -> dict[str, Any]:
    shares = torch.rand(ROWS, 1, 1, 1, generator=seeded(4))
    pixels, labels = batch["pixel_values"], torch.nn.functional.one_hot(batch["labels"], CLASSES).float()
    classes = shares[..., 0, 0] * labels + (1 - shares[..., 0, 0]) * labels.flip(0)
    return {"pixel_values": shares * pixels + (1 - shares) * pixels.flip(0), "labels": classes}


def erased_in_part() -> Sample:
    sample = of_vit()
    sample.batch["pixel_values"][:, :, 4:16, 8:20] = torch.randn(ROWS, 3, 12, 12, generator=seeded(2))
    return sample


# --- boxes ------------------------------------------------------------------------------------------------------------


def boxed(picture: Picture, place: int, rng: np.random.Generator) -> dict[str, Any]:
    """Return annotations of COCO: left, top, width and height in pixels."""
    height, width = picture.shape[:2]
    boxes = []
    for _ in range(1 + place % 3):
        size = rng.uniform(0.15, 0.45, 2) * (width, height)
        corner = rng.uniform(0, 1, 2) * ((width, height) - size)
        boxes.append([*corner.tolist(), *size.tolist()])
    return {"image_id": place, "annotations": [
        {"id": place * 10 + number, "image_id": place, "category_id": int(rng.integers(0, CLASSES)), "bbox": box,
         "area": box[2] * box[3], "iscrowd": 0} for number, box in enumerate(boxes)]}  # fmt: skip


def detected(name: str = "Detr", change: Callable[[Tensor], Tensor] = lambda boxes: boxes, label: int = 0) -> Sample:
    """Return a batch of a detector's processor; the change is made to its boxes: centre and size as shares."""
    rng = np.random.default_rng(6)
    prepare = processor(name, size=SMALL["size"] if name == "RTDetr" else {"shortest_edge": 48, "longest_edge": 64})
    pictures = photographs()
    noted = [boxed(picture, place, rng) for place, picture in enumerate(pictures)]
    given = prepare(pictures, annotations=noted, return_tensors="pt")
    labels = [
        {**one, "boxes": change(one["boxes"]), "class_labels": one["class_labels"] + label} for one in given["labels"]
    ]
    batch = {key: given[key] for key in ("pixel_values", "pixel_mask") if key in given}
    kind = {"RTDetr": "rt_detr", "DeformableDetr": "deformable_detr"}.get(name, name.lower())
    return made(batch | {"labels": labels}, model(kind, f"{name}ForObjectDetection"), prepare)


def as_corners(boxes: Tensor) -> Tensor:
    return torch.cat([boxes[:, :2] - boxes[:, 2:] / 2, boxes[:, :2] + boxes[:, 2:] / 2], 1)


def targets(change: Callable[[Tensor, int, int], Tensor] = lambda boxes, *_: boxes) -> Sample:
    """Return pictures and targets as torchvision's detectors take them: corners in pixels, classes from 1."""
    rng = np.random.default_rng(7)
    pictures = photographs()
    found = []
    for place, picture in enumerate(pictures):
        noted = boxed(picture, place, rng)["annotations"]
        boxes = torch.tensor([one["bbox"] for one in noted], dtype=torch.float32)
        boxes[:, 2:] += boxes[:, :2]
        classes = torch.tensor([one["category_id"] + 1 for one in noted])
        found.append({"boxes": change(boxes, *picture.shape[:2]), "labels": classes, "image_id": torch.tensor([place])})
    return made({"images": [torch.tensor(one).permute(2, 0, 1) / 255 for one in pictures], "targets": found})


# --- classes of pixels ------------------------------------------------------------------------------------------------


def masks(classes: int = CLASSES, *, void: bool = True) -> list[Picture]:
    rng = np.random.default_rng(8)
    found = []
    for _ in range(ROWS):
        mask = np.kron(rng.integers(0, classes, (6, 8)), np.ones((16, 16), int)).astype(np.uint8)
        mask[0] = VOID if void else mask[0]
        found.append(mask)
    return found


def segmented(maps: list[Picture], **settings: Any) -> Sample:
    prepare = processor("Segformer", **SMALL | settings)
    given = prepare(photographs(), segmentation_maps=maps, return_tensors="pt")
    config = model("segformer", "SegformerForSemanticSegmentation", num_channels=3)
    return made({"pixel_values": given["pixel_values"], "labels": given["labels"]}, config, prepare)


def masks_as_colours() -> Sample:
    sample = segmented(masks(void=False))
    palette = torch.randint(0, 255, (CLASSES, 3), generator=seeded(3))
    return replace(sample, batch=sample.batch | {"labels": palette[sample.batch["labels"]]})


def universal(classes: int = CLASSES, factor: int = 1) -> Sample:
    prepare = processor("Mask2Former", size=SMALL["size"], ignore_index=VOID)
    batch = dict(prepare(photographs(), segmentation_maps=masks(classes), return_tensors="pt"))
    batch["mask_labels"] = [mask * factor for mask in batch["mask_labels"]]
    return made(batch, model("mask2former", "Mask2FormerForUniversalSegmentation"), prepare)


# --- pictures in text and in time -------------------------------------------------------------------------------------


QWEN = {
    "model_type": "qwen2_vl", "architectures": ["Qwen2VLForConditionalGeneration"], "image_token_id": IMAGE,
    "vision_config": {"spatial_merge_size": 2}, "vocab_size": 200, "pad_token_id": PAD, "eos_token_id": EOS,
}  # fmt: skip
LLAVA = {
    "model_type": "llava", "architectures": ["LlavaForConditionalGeneration"], "image_token_index": IMAGE,
    "image_seq_length": 16, "vision_config": {"image_size": 32, "patch_size": 8}, "pad_token_id": PAD,
    "text_config": {"vocab_size": 200, "eos_token_id": EOS},
}  # fmt: skip


def answered(images: list[int], cut: int = 0) -> dict[str, Any]:
    """Return questions about a picture of so many tokens, with answers that are trained on."""
    rng = np.random.default_rng(9)
    rows = []
    for place, count in enumerate(images):
        asked = [VISION_START, *[IMAGE] * count, VISION_END, *rng.integers(10, 200, 6 + place % 3).tolist()]
        answer = [*rng.integers(10, 200, 5 + place % 4).tolist(), EOS]
        rows.append((asked + answer, [-100] * len(asked) + answer))
    width = cut or max(len(ids) for ids, _ in rows)

    def padded(values: list[int], fill: int) -> list[int]:
        return (values + [fill] * (width - len(values)))[:width]

    return {
        "input_ids": torch.tensor([padded(ids, PAD) for ids, _ in rows]),
        "attention_mask": torch.tensor([padded([1] * len(ids), 0) for ids, _ in rows]),
        "labels": torch.tensor([padded(labels, -100) for _, labels in rows]),
    }


def qwen(off: int = 0, cut: int = 0, **settings: Any) -> Sample:
    prepare = processor("Qwen2VL", min_pixels=56 * 56, max_pixels=112 * 112)
    given = prepare(photographs(), return_tensors="pt", **settings)
    counts = (given["image_grid_thw"].prod(1) // 4).tolist()
    counts[3] += off
    return made({**answered(counts, cut), **given}, QWEN, prepare)


def llava(tokens: int = 16) -> Sample:
    prepare = clip()
    return made({**answered([tokens] * ROWS), "pixel_values": classified(prepare)["pixel_values"]}, LLAVA, prepare)


def films(*, last: bool = False) -> Sample:
    prepare = processor("VideoMAE", **CROPPED)
    pictures = [photographs(seed=place, rows=4) for place in range(ROWS)]
    pixels = prepare(pictures, return_tensors="pt")["pixel_values"]
    config = model("videomae", "VideoMAEForVideoClassification", image_size=32, num_channels=3, num_frames=4)
    batch = {"pixel_values": pixels.permute(0, 1, 3, 4, 2).contiguous() if last else pixels}
    return made(batch | {"labels": torch.arange(ROWS) % CLASSES}, config, prepare)


Make = Callable[[], Sample]
FAULTS: Mapping[str, Mapping[str, Make]] = {
    "input_not_normalized": {
        "normalised twice": lambda: made(twice(vit), VIT, vit()),
        "normalised twice, without a processor": lambda: made(twice(clip)),
        "not rescaled": lambda: made(classified(vit(), do_rescale=False), VIT, vit()),
        "rescaled twice": rescaled_twice,
        "constants in the order of BGR": lambda: made(
            classified(convnext(image_mean=MEAN[::-1], image_std=DEVIATION[::-1])), CONVNEXT, convnext()
        ),
        "constants of another model": lambda: made(
            classified(vit(image_mean=MEAN, image_std=DEVIATION)), VIT, vit()
        ),
        "not normalised": lambda: made(classified(clip(do_normalize=False)), CLIP, clip()),
        "patches not normalised": lambda: qwen(do_normalize=False, do_rescale=False),
    },
    "blank_images": {"some pictures blank": some_pictures_blank},
    "duplicate_rows": {"the same pictures again": the_same_pictures_again},
    "nonfinite_values": {"not a number": not_a_number},
    "schema_mismatch": {
        "channels last": lambda: of_vit(
            lambda batch: {"pixel_values": batch["pixel_values"].permute(0, 2, 3, 1).contiguous()}
        ),
        "of another size": lambda: made(classified(vit(size={"height": 24, "width": 24})), VIT, vit()),
        "one channel of three": lambda: of_vit(lambda batch: {"pixel_values": batch["pixel_values"][:, :1]}),
        "masks as colours": masks_as_colours,
        "films with channels last": lambda: films(last=True),
    },
    "label_out_of_range": {
        "classes one too high": lambda: of_vit(lambda batch: {"labels": batch["labels"] + 1}),
        "classes of COCO as they are": lambda: detected("RTDetr", label=CLASSES),
        "pixels of unknown classes": lambda: segmented(masks(CLASSES + 3)),
        "masks of unknown classes": lambda: universal(CLASSES + 2),
    },
    "label_out_of_range schema_mismatch": {"masks of 0 and 255": lambda: universal(factor=255)},
    "all_labels_masked": {
        "all pixels void": lambda: segmented([np.full((96, 128), VOID, np.uint8)] * ROWS),
    },
    "box_out_of_range": {
        "boxes in pixels": lambda: detected(change=lambda boxes: boxes * torch.tensor([64, 48, 64, 48])),
        "boxes as corners": lambda: detected("Yolos", as_corners),
        "boxes from their top left": lambda: detected(
            "DeformableDetr", lambda boxes: torch.cat([as_corners(boxes)[:, :2], boxes[:, 2:]], 1)
        ),
        "sides for corners": lambda: targets(
            lambda boxes, *_: torch.cat([boxes[:, :2], boxes[:, 2:] - boxes[:, :2]], 1)
        ),
        "shares for pixels": lambda: targets(
            lambda boxes, height, width: boxes / torch.tensor([width, height, width, height])
        ),
        "boxes of the unscaled picture": lambda: targets(lambda boxes, *_: boxes * 4),
    },
    "image_tokens_truncated": {
        "text cut within a picture": lambda: qwen(cut=12),
        "a token too many": lambda: qwen(off=1),
        "a token of the class counted": lambda: llava(17),
    },
}  # fmt: skip
"""What makes each fault, by the checks that are right for it: any of them."""
HEALTHY: Mapping[str, Make] = {
    "ViT": of_vit,
    "CLIP alone": lambda: made(classified(clip())),
    "ConvNext": lambda: made(classified(convnext()), CONVNEXT, convnext()),
    "photographs at night": lambda: made(
        classified(siglip(), [(picture * 0.12).astype(np.uint8) for picture in photographs()]), SIGLIP, siglip()
    ),
    "products on white": products_on_white,
    "grey photographs": grey_photographs,
    "mixed up": lambda: of_vit(mixed_up),
    "erased in part": erased_in_part,
    "DETR": detected,
    "RT-DETR": lambda: detected("RTDetr"),
    "torchvision": targets,
    "SegFormer": lambda: segmented(masks()),
    "SegFormer, reduced": lambda: segmented(masks(CLASSES + 1, void=False), do_reduce_labels=True),
    "Mask2Former": universal,
    "Qwen": qwen,
    "LLaVA": llava,
    "films": films,
}
MADE: Mapping[str, tuple[str, Make]] = {
    name: (checks, make) for checks, makes in {**FAULTS, "": HEALTHY}.items() for name, make in makes.items()
}
"""The checks that are right, and what makes the batch, by its name."""


def sample(name: str) -> Sample:
    """Make the sample of this name."""
    checks, make = MADE[name]
    return replace(make(), name=name, checks=tuple(checks.split()))
