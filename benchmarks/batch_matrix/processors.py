"""Batches of image processors, with faults and without: `python -m benchmarks.batch_matrix.processors`.

The processors are those of Transformers, with their default settings, and targets as torchvision's detectors take them.
The batches are made on the spot and saved as users save them; nothing is downloaded. FAULTS says for each fault which
checks are right, HEALTHY lists what must be left alone. Both tables were written before the tool was asked.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from mldebug_mcp.judge.batch import inspect_batch

Picture = npt.NDArray[np.uint8]
ROWS = 8
CLASSES = 5
PAD, EOS, IMAGE, VISION_START, VISION_END = 0, 1, 4, 5, 6
VOID = 255


def photographs(height: int = 96, width: int = 128, *, seed: int = 5, rows: int = ROWS) -> list[Picture]:
    """Return smooth coloured pictures with some grain, 0 to 255, height by width by channels."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(rows):
        coarse = rng.integers(0, 256, (height // 16, width // 16, 3)) * np.array([1.0, 0.9, 0.8])
        smooth = np.kron(coarse, np.ones((16, 16, 1)))
        found.append(np.clip(smooth + rng.normal(0, 6, smooth.shape), 0, 255).astype(np.uint8))
    return found


def processor(name: str, **settings: Any) -> Any:
    import transformers

    return getattr(transformers, name)(**settings)


SMALL: dict[str, Any] = {"size": {"height": 32, "width": 32}}
CROPPED: dict[str, Any] = {"size": {"shortest_edge": 32}, "crop_size": {"height": 32, "width": 32}}
IMAGENET: tuple[list[float], list[float]] = ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])


def vit(**settings: Any) -> Any:
    return processor("ViTImageProcessorPil", **SMALL | settings)


def clip(**settings: Any) -> Any:
    return processor("CLIPImageProcessorPil", **CROPPED | settings)


def siglip(**settings: Any) -> Any:
    return processor("SiglipImageProcessorPil", **SMALL | settings)


def model(kind: str, architecture: str, **settings: Any) -> dict[str, Any]:
    labels = {str(number): f"LABEL_{number}" for number in range(CLASSES)}
    return {"model_type": kind, "architectures": [architecture], "id2label": labels} | settings


def classified(prepare: Any, pictures: Any = None, **changes: Any) -> dict[str, Any]:
    """Return a batch of a processor with a class for each picture."""
    pictures = photographs() if pictures is None else pictures
    pixels = prepare(pictures, return_tensors="pt", **changes)["pixel_values"]
    return {"pixel_values": pixels, "labels": torch.arange(len(pictures)) % CLASSES}


VIT = model("vit", "ViTForImageClassification", image_size=32, num_channels=3, patch_size=8)
CLIP = model("clip", "CLIPForImageClassification", vision_config={"image_size": 32, "patch_size": 8})
CONVNEXT = model("convnext", "ConvNextForImageClassification", num_channels=3)
SIGLIP = model("siglip", "SiglipForImageClassification", vision_config={"image_size": 32, "patch_size": 8})


class Case:
    """A batch, what made it, and the model that it is for."""

    def __init__(self, batch: dict[str, Any], config: dict[str, Any] | None = None, made_by: Any = None) -> None:
        self.batch, self.config, self.made_by = batch, config, made_by

    def found(self) -> dict[str, str]:
        """Return the severity of each finding by check."""
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            torch.save(self.batch, folder / "batch.pt")
            if self.config is not None:
                (folder / "config.json").write_text(json.dumps(self.config), encoding="utf-8")
            if self.made_by is not None:
                self.made_by.save_pretrained(folder)
            answer = inspect_batch(folder / "batch.pt", model=folder if self.config is not None else None)
        return {finding.check: finding.severity for finding in answer.findings}


# --- classes of images ------------------------------------------------------------------------------------------------


def normalised_twice() -> Case:
    once = classified(vit())["pixel_values"]
    batch = classified(vit(do_resize=False, do_rescale=False), list(once))
    return Case(batch, VIT, vit())


def normalised_twice_without_a_processor() -> Case:
    once = classified(clip())["pixel_values"]
    return Case(classified(clip(do_resize=False, do_rescale=False), list(once)))


def not_rescaled() -> Case:
    return Case(classified(vit(), do_rescale=False), VIT, vit())


def rescaled_twice() -> Case:
    shares = [torch.tensor(picture).permute(2, 0, 1) / 255 for picture in photographs(32, 32)]
    return Case(classified(clip(do_resize=False), shares), CLIP, clip())


def channels_last() -> Case:
    batch = classified(vit())
    return Case(batch | {"pixel_values": batch["pixel_values"].permute(0, 2, 3, 1).contiguous()}, VIT, vit())


def constants_in_the_order_of_bgr() -> Case:
    mean, deviation = IMAGENET
    small = {"size": {"shortest_edge": 32}, "crop_pct": 1.0}
    reversed_ = processor("ConvNextImageProcessorPil", **small, image_mean=mean[::-1], image_std=deviation[::-1])
    return Case(classified(reversed_), CONVNEXT, processor("ConvNextImageProcessorPil", **small))


def constants_of_another_model() -> Case:
    mean, deviation = IMAGENET
    return Case(classified(vit(image_mean=mean, image_std=deviation)), VIT, vit())


def not_normalised() -> Case:
    return Case(classified(clip(do_normalize=False)), CLIP, clip())


def some_pictures_blank() -> Case:
    pictures = photographs()
    for place in (1, 4, 6):
        pictures[place] = np.zeros_like(pictures[place])
    return Case(classified(siglip(), pictures), SIGLIP, siglip())


def of_another_size() -> Case:
    return Case(classified(vit(size={"height": 24, "width": 24})), VIT, vit())


def one_channel_of_three() -> Case:
    batch = classified(vit())
    return Case(batch | {"pixel_values": batch["pixel_values"][:, :1]}, VIT, vit())


def classes_one_too_high() -> Case:
    batch = classified(vit())
    return Case(batch | {"labels": batch["labels"] + 1}, VIT, vit())


def the_same_pictures_again() -> Case:
    pictures = photographs()
    batch = classified(clip(), [*pictures[:3], *pictures[:3], *pictures[:2]])
    return Case(batch | {"labels": torch.tensor([0, 1, 2, 0, 1, 2, 0, 1])}, CLIP, clip())


def not_a_number() -> Case:
    batch = classified(vit())
    batch["pixel_values"][2, 0, 3, 3] = float("nan")
    return Case(batch, VIT, vit())


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


DETECTORS = {
    "DetrImageProcessorPil": model("detr", "DetrForObjectDetection"),
    "YolosImageProcessorPil": model("yolos", "YolosForObjectDetection"),
    "RTDetrImageProcessorPil": model("rt_detr", "RTDetrForObjectDetection"),
    "DeformableDetrImageProcessorPil": model("deformable_detr", "DeformableDetrForObjectDetection"),
}


def detected(
    name: str = "DetrImageProcessorPil",
    change: Callable[[Tensor], Tensor] = lambda boxes: boxes,
    label: int = 0,
) -> Case:
    """Return a batch of a detector's processor; the change is made to its boxes: centre and size as shares."""
    rng = np.random.default_rng(6)
    size = SMALL["size"] if name.startswith("RT") else {"shortest_edge": 48, "longest_edge": 64}
    prepare = processor(name, size=size)
    pictures = photographs()
    noted = [boxed(picture, place, rng) for place, picture in enumerate(pictures)]
    made = prepare(pictures, annotations=noted, return_tensors="pt")
    labels = [dict(one) for one in made["labels"]]
    for one in labels:
        one["boxes"], one["class_labels"] = change(one["boxes"]), one["class_labels"] + label
    batch = {key: made[key] for key in ("pixel_values", "pixel_mask") if key in made}
    return Case(batch | {"labels": labels}, DETECTORS[name], prepare)


def boxes_in_pixels() -> Case:
    return detected(change=lambda boxes: boxes * torch.tensor([64, 48, 64, 48]))


def as_corners(boxes: Tensor) -> Tensor:
    return torch.cat([boxes[:, :2] - boxes[:, 2:] / 2, boxes[:, :2] + boxes[:, 2:] / 2], 1)


def boxes_as_corners() -> Case:
    return detected("YolosImageProcessorPil", as_corners)


def boxes_from_their_top_left() -> Case:
    return detected("DeformableDetrImageProcessorPil",
                    lambda boxes: torch.cat([boxes[:, :2] - boxes[:, 2:] / 2, boxes[:, 2:]], 1))  # fmt: skip


def classes_of_coco_as_they_are() -> Case:
    return detected("RTDetrImageProcessorPil", label=CLASSES)


def targets(change: Callable[[Tensor, int, int], Tensor] = lambda boxes, *_: boxes) -> Case:
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
    return Case({"images": [torch.tensor(one).permute(2, 0, 1) / 255 for one in pictures], "targets": found})


def sides_for_corners() -> Case:
    return targets(lambda boxes, *_: torch.cat([boxes[:, :2], boxes[:, 2:] - boxes[:, :2]], 1))


def shares_for_pixels() -> Case:
    return targets(lambda boxes, height, width: boxes / torch.tensor([width, height, width, height]))


def boxes_of_the_unscaled_picture() -> Case:
    return targets(lambda boxes, *_: boxes * 4)


# --- classes of pixels ------------------------------------------------------------------------------------------------


def masks(classes: int = CLASSES, *, void: bool = True) -> list[Picture]:
    rng = np.random.default_rng(8)
    found = []
    for _ in range(ROWS):
        mask = np.kron(rng.integers(0, classes, (6, 8)), np.ones((16, 16), int)).astype(np.uint8)
        mask[0] = VOID if void else mask[0]
        found.append(mask)
    return found


SEGFORMER = model("segformer", "SegformerForSemanticSegmentation", num_channels=3)
UNIVERSAL = model("mask2former", "Mask2FormerForUniversalSegmentation")


def segmented(maps: list[Picture], **settings: Any) -> Case:
    prepare = processor("SegformerImageProcessorPil", **SMALL | settings)
    made = prepare(photographs(), segmentation_maps=maps, return_tensors="pt")
    return Case({"pixel_values": made["pixel_values"], "labels": made["labels"]}, SEGFORMER, prepare)


def pixels_of_unknown_classes() -> Case:
    return segmented(masks(CLASSES + 3))


def all_pixels_void() -> Case:
    return segmented([np.full((96, 128), VOID, np.uint8)] * ROWS)


def masks_as_colours() -> Case:
    case = segmented(masks(void=False))
    palette = torch.randint(0, 255, (CLASSES, 3), generator=torch.Generator().manual_seed(3))
    return Case(case.batch | {"labels": palette[case.batch["labels"]]}, SEGFORMER, case.made_by)


def universal(classes: int = CLASSES) -> Case:
    prepare = processor("Mask2FormerImageProcessorPil", size=SMALL["size"], ignore_index=VOID)
    made = prepare(photographs(), segmentation_maps=masks(classes), return_tensors="pt")
    return Case(dict(made), UNIVERSAL, prepare)


def masks_of_unknown_classes() -> Case:
    return universal(CLASSES + 2)


def masks_of_0_and_255() -> Case:
    case = universal()
    case.batch["mask_labels"] = [mask * 255 for mask in case.batch["mask_labels"]]
    return case


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


def qwen(off: int = 0, cut: int = 0, **settings: Any) -> Case:
    prepare = processor("Qwen2VLImageProcessorPil", min_pixels=56 * 56, max_pixels=112 * 112)
    made = prepare(photographs(), return_tensors="pt", **settings)
    counts = (made["image_grid_thw"].prod(1) // 4).tolist()
    counts[3] += off
    return Case({**answered(counts, cut), **made}, QWEN, prepare)


def llava(tokens: int = 16) -> Case:
    prepare = clip()
    return Case({**answered([tokens] * ROWS), "pixel_values": classified(prepare)["pixel_values"]}, LLAVA, prepare)


def text_cut_within_a_picture() -> Case:
    return qwen(cut=12)


def a_token_too_many() -> Case:
    return qwen(off=1)


def a_token_of_the_class_counted() -> Case:
    return llava(17)


def patches_not_normalised() -> Case:
    return qwen(do_normalize=False, do_rescale=False)


def films(*, last: bool = False) -> Case:
    prepare = processor("VideoMAEImageProcessorPil", **CROPPED)
    frames = [photographs(seed=place, rows=4) for place in range(ROWS)]
    pixels = prepare(frames, return_tensors="pt")["pixel_values"]
    config = model("videomae", "VideoMAEForVideoClassification", image_size=32, num_channels=3, num_frames=4)
    batch = {"pixel_values": pixels.permute(0, 1, 3, 4, 2).contiguous() if last else pixels}
    return Case(batch | {"labels": torch.arange(ROWS) % CLASSES}, config, prepare)


def films_with_channels_last() -> Case:
    return films(last=True)


FAULTS: dict[str, set[str]] = {
    "normalised_twice": {"input_not_normalized"},
    "normalised_twice_without_a_processor": {"input_not_normalized"},
    "not_rescaled": {"input_not_normalized"},
    "rescaled_twice": {"input_not_normalized"},
    "channels_last": {"schema_mismatch"},
    "constants_in_the_order_of_bgr": {"input_not_normalized"},
    "constants_of_another_model": {"input_not_normalized"},
    "not_normalised": {"input_not_normalized"},
    "some_pictures_blank": {"blank_images"},
    "of_another_size": {"schema_mismatch"},
    "one_channel_of_three": {"schema_mismatch"},
    "classes_one_too_high": {"label_out_of_range"},
    "the_same_pictures_again": {"duplicate_rows"},
    "not_a_number": {"nonfinite_values"},
    "boxes_in_pixels": {"box_out_of_range"},
    "boxes_as_corners": {"box_out_of_range"},
    "boxes_from_their_top_left": {"box_out_of_range"},
    "classes_of_coco_as_they_are": {"label_out_of_range"},
    "sides_for_corners": {"box_out_of_range"},
    "shares_for_pixels": {"box_out_of_range"},
    "boxes_of_the_unscaled_picture": {"box_out_of_range"},
    "pixels_of_unknown_classes": {"label_out_of_range"},
    "all_pixels_void": {"all_labels_masked"},
    "masks_as_colours": {"schema_mismatch"},
    "masks_of_unknown_classes": {"label_out_of_range"},
    "masks_of_0_and_255": {"label_out_of_range", "schema_mismatch"},
    "text_cut_within_a_picture": {"image_tokens_truncated"},
    "a_token_too_many": {"image_tokens_truncated"},
    "a_token_of_the_class_counted": {"image_tokens_truncated"},
    "patches_not_normalised": {"input_not_normalized"},
    "films_with_channels_last": {"schema_mismatch"},
}
"""The checks that are right for a fault: any of them."""


# --- healthy ----------------------------------------------------------------------------------------------------------


def healthy_vit() -> Case:
    return Case(classified(vit()), VIT, vit())


def healthy_clip_alone() -> Case:
    return Case(classified(clip()))


def healthy_convnext() -> Case:
    prepare = processor("ConvNextImageProcessorPil", size={"shortest_edge": 32}, crop_pct=1.0)
    return Case(classified(prepare), CONVNEXT, prepare)


def photographs_at_night() -> Case:
    return Case(
        classified(siglip(), [(picture * 0.12).astype(np.uint8) for picture in photographs()]), SIGLIP, siglip()
    )


def products_on_white() -> Case:
    pictures = photographs()
    for picture in pictures:
        picture[:20], picture[-20:], picture[:, :30], picture[:, -30:] = VOID, VOID, VOID, VOID
    return Case(classified(vit(), pictures), VIT, vit())


def grey_photographs() -> Case:
    pictures = [np.repeat(picture.mean(2, keepdims=True).astype(np.uint8), 3, 2) for picture in photographs()]
    return Case(classified(clip(), pictures), CLIP, clip())


def mixed_up() -> Case:
    batch = classified(vit())
    shares = torch.rand(ROWS, 1, 1, 1, generator=torch.Generator().manual_seed(4))
    pixels, labels = batch["pixel_values"], torch.nn.functional.one_hot(batch["labels"], CLASSES).float()
    mixed = shares * pixels + (1 - shares) * pixels.flip(0)
    classes = shares[..., 0, 0] * labels + (1 - shares[..., 0, 0]) * labels.flip(0)
    return Case({"pixel_values": mixed, "labels": classes}, VIT, vit())


def erased_in_part() -> Case:
    batch = classified(vit())
    batch["pixel_values"][:, :, 4:16, 8:20] = torch.randn(ROWS, 3, 12, 12, generator=torch.Generator().manual_seed(2))
    return Case(batch, VIT, vit())


def healthy_detr() -> Case:
    return detected()


def healthy_rt_detr() -> Case:
    return detected("RTDetrImageProcessorPil")


def healthy_targets() -> Case:
    return targets()


def healthy_segformer() -> Case:
    return segmented(masks())


def healthy_reduced() -> Case:
    return segmented(masks(CLASSES + 1, void=False), do_reduce_labels=True)


def healthy_mask2former() -> Case:
    return universal()


def healthy_qwen() -> Case:
    return qwen()


def healthy_llava() -> Case:
    return llava()


def healthy_films() -> Case:
    return films()


HEALTHY = (
    "healthy_vit", "healthy_clip_alone", "healthy_convnext", "photographs_at_night", "products_on_white",
    "grey_photographs", "mixed_up", "erased_in_part", "healthy_detr", "healthy_rt_detr", "healthy_targets",
    "healthy_segformer", "healthy_reduced", "healthy_mask2former", "healthy_qwen", "healthy_llava", "healthy_films",
)  # fmt: skip


def is_right(name: str, found: dict[str, str]) -> bool:
    """Tell whether an expected check was found; for a healthy batch, whether nothing but remarks was."""
    if name in FAULTS:
        return bool(FAULTS[name] & found.keys())
    return all(severity == "info" for severity in found.values())


def main() -> None:
    """Print each batch that is not judged rightly, and how many are."""
    right = dict.fromkeys(("faults found", "healthy quiet"), 0)
    for name in (*FAULTS, *HEALTHY):
        found = globals()[name]().found()
        right["faults found" if name in FAULTS else "healthy quiet"] += is_right(name, found)
        if not is_right(name, found):
            expected = " or ".join(sorted(FAULTS.get(name, {"nothing"})))
            print(f"{name}: expected {expected}, found {', '.join(found) or 'nothing'}")
    for (kind, count), asked in zip(right.items(), (FAULTS, HEALTHY), strict=True):
        print(f"{kind} {count}/{len(asked)}")


if __name__ == "__main__":
    main()
