"""Is a tokenized corpus whole: ends between documents, ids as they were written, no copies, and a random order?"""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

from mldebug_mcp.batch.batch import Batch
from mldebug_mcp.batch.corpus import BIG_ENDIAN, CorpusCounts, IdCounts, ShardCounts
from mldebug_mcp.checks.batch import batch_evidence, problems_of, rows_of
from mldebug_mcp.checks.check import Evidence, batch_check
from mldebug_mcp.core.arrays import entropy
from mldebug_mcp.core.text import counted, quoted, shorten

MIN_DOCUMENTS = 20
"""Documents from which their ends, lengths and order are judged. Chosen: fewer end or rise alike by chance."""
MIN_TOKENS = 10_000
"""Tokens of a stream in which an end of a document is expected. Chosen: ten times a usual document of the web."""
TEXT_LIKE = 0.01
"""Share of the commonest id. Chosen: in text it is several in a hundred, in ids drawn at random far less."""
MAX_SHARD_NAME = 80
"""Characters of a shard's name that are shown. Chosen: a line of a terminal."""
MAX_FILES_NAMED = 3
"""Files that a sentence names. Chosen: a line holds as many."""
NEARLY_ALL = 0.9
"""Share of documents that end with their end id. Chosen: up to two thirds of texts end with one punctuation mark."""
MOST_WITHOUT = 0.05
"""Share of documents that may lack their end. Chosen: a format may split long documents."""


def _name(batch: Batch, number: int) -> str:
    """Return an id with its text, where a tokenizer knows it."""
    text = batch.texts.pieces([number])[0] if batch.texts is not None else ""
    return f"id {number} ({quoted(text)})" if text else f"id {number}"


def _top(counts: IdCounts) -> tuple[int, int]:
    return next(iter(counts.most_common(1)), (-1, 0))


def separators(batch: Batch, corpus: CorpusCounts) -> tuple[frozenset[int], int]:
    """Return the ids that should stand between documents, and how many documents they end or begin; -1 if not known."""
    known = batch.ends
    if not known:
        return known, -1
    inside = corpus.is_stream
    ended = sum(corpus.occurs(end) if inside else corpus.last[end] for end in known)
    # GPT-2's one token for both stands before each document in the corpora of llm.c.
    begin = known if batch.bos is None else known | {batch.bos}
    begun = sum(corpus.occurs(number) if inside else corpus.first[number] for number in begin)
    return known, max(ended, begun)


def _wrapped_end(batch: Batch, corpus: CorpusCounts) -> int | None:
    """Return the end token that stands where documents end as its remainder by 65,536, or None."""
    top, count = _top(corpus.last)
    for end in batch.ends:
        if end < IDS_IN_TWO_BYTES or corpus.occurs(end):
            continue
        if corpus.is_stream:
            if corpus.occurs(end % IDS_IN_TWO_BYTES) and not corpus.occurs_from(IDS_IN_TWO_BYTES):
                return end
        elif end % IDS_IN_TWO_BYTES == top and count >= NEARLY_ALL * corpus.filled_documents:
            return end
    return None


@batch_check(
    severity="warning",
    why=(
        "Documents run into each other: the model learns to go on from the end of one to the beginning of another, and "
        "never to stop."
    ),
    fix="Append the tokenizer's end token to each document when the corpus is tokenized, and tokenize it again.",
    fixes={
        "Megatron": "preprocess_data.py --append-eod.",
        "datatrove": "DocumentTokenizer(eos_token=...).",
        "MosaicML": "convert_dataset_hf.py --eos_text.",
        "litgpt": "tokenizer.encode(text, eos=True).",
    },
    quotes=("hf_packing_boundaries",),
    purposes=("pretraining",),
    whole=True,
)
def document_end_missing(batch: Batch) -> Evidence | None:
    """No token stands between documents, or one in twenty documents lacks it.

    Without tokenizer and configuration it is seen where documents neither end nor begin with one id. Or a file holds no
    special token at all, where 20 are due by what the other files of the corpus hold.

    Not this when: another id stands there (`document_end_wrong`); documents are cut at one length
    (`documents_truncated`); the data are ids drawn at random, and no text; a stream holds fewer than 10,000 tokens.
    """
    corpus = batch.corpus
    if corpus is not None and (of_files := _files_without_ends(corpus)):
        return batch_evidence(of_files)
    if corpus is None or _wrong_end(batch, corpus) is not None or _wrapped_end(batch, corpus) is not None:
        return None
    if _misread(corpus):  # ids that are none have no end
        return None
    return _missing_in_stream(batch, corpus) if corpus.is_stream else _missing_after_documents(batch, corpus)


MIN_ENDS_DUE = 20
"""Ends of documents that a file has by the other files, where it has none. Chosen: no chance, and no long document."""


def _files_without_ends(corpus: CorpusCounts) -> str:
    """Return which files hold no token that may stand between documents, as other files do; empty if none is so."""
    filled = [shard for shard in corpus.shards.values() if shard.marks]
    tokens, marks = (sum(counts) for counts in ([shard.tokens for shard in filled], [shard.marks for shard in filled]))
    lacking = [
        name
        for name, shard in corpus.shards.items()
        if not shard.marks and shard.tokens * marks >= MIN_ENDS_DUE * max(1, tokens)
    ]
    if not lacking or len(lacking) > len(filled):
        return ""
    names = ", ".join(shorten(name, MAX_SHARD_NAME) for name in lacking[:MAX_FILES_NAMED])
    verb = "holds" if len(lacking) == 1 else "hold"
    return (
        f"{names} {verb} no token that stands between documents ({counted(len(lacking), 'file')} of "
        f"{len(corpus.shards)}); the others hold {marks:,} special tokens in {tokens:,}"
    )


def _missing_in_stream(batch: Batch, corpus: CorpusCounts) -> Evidence | None:
    known, found = separators(batch, corpus)
    if found != 0 or corpus.tokens < MIN_TOKENS:
        return None
    names = " or ".join(_name(batch, end) for end in sorted(known))
    return batch_evidence(f"the end of a document, {names}, stands nowhere in {corpus.tokens:,} tokens")


def _missing_after_documents(batch: Batch, corpus: CorpusCounts) -> Evidence | None:
    known, found = separators(batch, corpus)
    documents = corpus.filled_documents - corpus.cut_documents
    if documents < MIN_DOCUMENTS or corpus.commonest_share < TEXT_LIKE:
        return None
    last, ended = _top(corpus.last)
    lacking = documents - found if found >= 0 else documents - max(ended, _top(corpus.first)[1])
    if lacking <= (MOST_WITHOUT if found >= 0 else 1 - NEARLY_ALL) * documents:
        return None
    most = f"most often they end with {_name(batch, last)} ({ended:,} of {corpus.filled_documents:,})"
    if found < 0:
        return batch_evidence(f"no id stands between documents: they end with {len(corpus.last):,} ids; {most}")
    names = " or ".join(_name(batch, end) for end in sorted(known))
    return batch_evidence(
        f"{lacking:,} of {corpus.filled_documents:,} documents do not end with {names}; {most}",
        values={"documents": lacking, "ended": found},
    )


def _wrong_end(batch: Batch, corpus: CorpusCounts) -> tuple[int, int] | None:
    """Return the id that stands where the end token should, and how often; None if there is none."""
    _, found = separators(batch, corpus)
    special = (batch.tokenizer.special_ids if batch.tokenizer is not None else frozenset()) - batch.ends - {batch.bos}
    if found < 0 or _wrapped_end(batch, corpus) is not None or _misread(corpus):
        return None
    if corpus.is_stream:
        if found or corpus.tokens < MIN_TOKENS:
            return None
        number = max(special, key=corpus.occurs, default=-1)
        return (number, corpus.occurs(number)) if corpus.occurs(number) else None
    number, count = _top(corpus.last)
    documents = corpus.filled_documents - corpus.cut_documents
    if documents < MIN_DOCUMENTS or found >= documents / 2 or number in batch.ends:
        return None
    return (number, count) if count >= (0.5 if number in special else NEARLY_ALL) * documents else None


@batch_check(
    severity="error",
    why="The model learns another end than the one at which generation stops: it runs on until the length limit.",
    fix="Tokenize the corpus again with the end token of this tokenizer, or name the right tokenizer or model here.",
    fixes={
        "nanoGPT": "prepare.py appends enc.eot_token of its own tokenizer.",
        "llm.c": "as nanoGPT, before each text.",
    },
    quotes=("trl_eos_align",),
    purposes=("pretraining",),
    whole=True,
)
def document_end_wrong(batch: Batch) -> Evidence | None:
    """Documents end with an id that is not the end token of the tokenizer or of the model.

    Not this when: documents begin with the first token instead; neither a tokenizer nor a configuration was given.
    """
    corpus = batch.corpus
    wrong = None if corpus is None else _wrong_end(batch, corpus)
    if corpus is None or wrong is None:
        return None
    names = " or ".join(_name(batch, end) for end in sorted(batch.ends))
    where = "stands in the stream" if corpus.is_stream else f"ends documents ({corpus.documents:,} in all)"
    return batch_evidence(
        f"{_name(batch, wrong[0])} {where} {wrong[1]:,} times, and the end token, {names}, nowhere",
        values={"id": wrong[0], "count": wrong[1]},
    )


MIN_DOUBLED_ENDS_SHARE = 0.1
"""Share of documents whose end or beginning stands twice. Chosen: an empty document leaves two now and then."""


@batch_check(
    severity="warning",
    why="One of the two is added by the tokenizer and one by the script: the model learns to say its end twice, and "
    "windows hold less text.",
    fix="Append the end token only where the tokenizer does not, or encode with add_special_tokens=False.",
    fixes={"Megatron": "preprocess_data.py without --append-eod, if the tokenizer ends each text itself."},
    quotes=("hf_packing_boundaries",),
    purposes=("pretraining",),
    whole=True,
)
def document_end_twice(batch: Batch) -> Evidence | None:
    """One document in ten or more ends with two end tokens, or begins with two first tokens.

    Not this when: neither tokenizer nor configuration names them, and documents end with other ids.
    """
    corpus = batch.corpus
    if corpus is None or corpus.is_stream or corpus.documents < MIN_DOCUMENTS:
        return None
    edges = batch.ends | ({batch.bos} if batch.bos is not None else frozenset())
    number, count = max(((edge, corpus.doubled[edge]) for edge in edges), key=lambda pair: pair[1], default=(-1, 0))
    if not batch.ends:
        number, count = _top(corpus.doubled)
        if count < NEARLY_ALL * corpus.documents:
            return None
    if count < MIN_DOUBLED_ENDS_SHARE * corpus.documents:
        return None
    return batch_evidence(
        f"{_name(batch, number)} stands twice in a row at the edge of {count:,} of {corpus.documents:,} documents",
        values={"documents": count, "id": number},
    )


MOST_PADDING = 0.01
"""Share of padding inside of documents. Chosen: a token that text never holds is none of its tokens."""


@batch_check(
    severity="warning",
    why="The model is trained to go on from padding, and predicts it: windows of the corpus hold that much less text.",
    fix="Join the documents without padding; pad rows, if they need it, when a batch is made.",
    quotes=("trl_maxlen_discard",),
    purposes=("pretraining",),
    whole=True,
)
def padding_inside_documents(batch: Batch) -> Evidence | None:
    """The tokenizer's padding token stands inside of a stream, or of documents that are not padded rows.

    Not this when: the padding token is the end, the first or the unknown token too; rows are padded at their edges.
    """
    corpus, tokenizer = batch.corpus, batch.tokenizer
    if corpus is None or tokenizer is None or tokenizer.pad is None or batch.words is not None:
        return None
    pad = tokenizer.pad
    count = corpus.occurs(pad)
    if pad in {*batch.ends, batch.bos, tokenizer.unknown} or count < MOST_PADDING * corpus.tokens:
        return None
    if separators(batch, corpus)[1] <= 0:
        return None  # it may stand between documents: document_end_wrong
    share = count / corpus.tokens
    return batch_evidence(
        f"{count:,} of {corpus.tokens:,} tokens ({share:.0%}) are padding, {_name(batch, pad)}, inside of the text",
        values={"share": share},
    )


# Ids that were stored in too few bytes, or are read in another width or order than they were written.


IDS_IN_TWO_BYTES = 65_536
"""Ids that two bytes hold. Source: 2 to the 16th."""
NEXT_IDS = 4096
"""Ids on either side of 65,536 that are compared. Chosen: so near each other that they are about as common."""
MIN_NEXT = 20
"""Tokens among the ids below from which some are expected above. Chosen: by chance none is in e to the -20th cases."""


@batch_check(
    severity="error",
    why="Ids of 65,536 and more were stored as their remainder: they stand for other tokens, and the text is garbled.",
    fix="Store the ids in 4 bytes (uint32 or int32), and tokenize the corpus again: the lost part cannot be recovered.",
    fixes={"Megatron": "let preprocess_data.py choose the type from the size of the tokenizer's vocabulary."},
    quotes=("hfcourse_decode_inputs",),
    purposes=("pretraining",),
    whole=True,
)
def ids_wrapped(batch: Batch) -> Evidence | None:
    """Two bytes hold ids of a vocabulary of more than 65,536, or ids stop there as if they had been stored so.

    Not this when: neither tokenizer nor configuration says how large the vocabulary is.
    """
    corpus, size = batch.corpus, batch.vocabulary
    if corpus is None or size is None or size <= IDS_IN_TWO_BYTES or corpus.occurs_from(IDS_IN_TWO_BYTES):
        return None
    end = _wrapped_end(batch, corpus)
    narrow = corpus.stored.startswith(("uint16", "int16"))
    below = corpus.counts.total(IDS_IN_TWO_BYTES - NEXT_IDS)
    if not narrow and end is None and (below < MIN_NEXT or size < IDS_IN_TWO_BYTES + NEXT_IDS):
        return None
    summary = (
        f"stored as {corpus.stored}, ids go up to {IDS_IN_TWO_BYTES - 1:,}"
        if narrow
        else f"{below:,} tokens are among the {NEXT_IDS:,} ids below {IDS_IN_TWO_BYTES:,}, and none above"
    )
    ends = (
        ""
        if end is None
        else f"; documents end with id {end % IDS_IN_TWO_BYTES}, which is the end token {end} less {IDS_IN_TWO_BYTES:,}"
    )
    return batch_evidence(f"{summary}, but the vocabulary has {size:,} ids{ends}", values={"vocabulary": size})


MIN_PAIRS = 500
"""Pairs of tokens that are looked at. Chosen: a shorter corpus is none."""
ALL_ZERO = 0.98
"""Share of zeros in every second place. Chosen: all but ids beyond 65,536."""
MOST_ZERO = 0.6
"""Share of zeros in the other places. Chosen: of ids of eight bytes read as two, half and those of id 0 are."""
LEAST_BITS = 0.5
"""Bits of entropy by which the upper byte of ids varies less than the lower one. Chosen: text has several."""
MIN_USED = 256
"""Different ids from which both bytes of an id are used. Source: values of a byte."""
MOST_HUGE = 0.01
"""Share of ids beyond any vocabulary. Chosen: single ones are damage, and found as out of range."""


@batch_check(
    severity="error",
    why="The ids that the trainer sees are not those that the tokenizer gave: it learns noise.",
    fix="Read the file with the type and byte order with which it was written; state it with --dtype to compare.",
    quotes=("hfcourse_decode_inputs",),
    purposes=("pretraining",),
    whole=True,
)
def dtype_misread(batch: Batch) -> Evidence | None:
    """Every second token is 0, ids lie beyond any vocabulary, or the lower byte of ids varies less than the upper one.

    Or a file ends inside an id. Each is what ids look like that are read in another width or byte order than they were
    written.

    Not this when: there are fewer than 1,000 tokens.
    """
    corpus = batch.corpus
    if corpus is None:
        return None
    if BIG_ENDIAN in corpus.stored:
        return batch_evidence(
            f"the ids are stored with the {BIG_ENDIAN}; most trainers read the other order, and would see other ids",
            severity="warning",
        )
    summary = _misread(corpus) or _cut_off(corpus)
    return batch_evidence(summary) if summary else None


@batch_check(
    severity="error",
    why="Bytes changed after the file was written. TensorFlow stops at such a record; other readers train on it.",
    fix="Copy the file again from its source, and compare checksums of the whole file; else write it again.",
    quotes=("hfcourse_decode_inputs",),
)
def records_corrupt(batch: Batch) -> Evidence | None:
    """A record of a TFRecord file does not match the checksum that stands behind it.

    Not this when: the writer gives no checksums, as those of other formats.
    """
    problems = problems_of(batch, "records_corrupt")
    return batch_evidence(problems[0].summary, rows_of(problems)) if problems else None


def _cut_off(corpus: CorpusCounts) -> str:
    """Return what shows that files end inside an id; empty if none does."""
    if not corpus.cut_off:
        return ""
    shard, left = next(iter(corpus.cut_off.items()))
    where = f"{shard} ends" if shard else "the file ends"
    left_bytes = counted(left, "byte")
    others = f", and {len(corpus.cut_off) - 1} more do" if len(corpus.cut_off) > 1 else ""
    return (
        f"{where} {left_bytes} behind the last whole id{others}: it is cut off, or its ids have another width than "
        f"those of {corpus.stored}"
    )


def _misread(corpus: CorpusCounts) -> str:
    """Return what shows that ids are read in another width or order than they were written; empty if nothing does."""
    if _is_half_zero(corpus):
        return f"every second token is 0, read as {corpus.stored}: ids of twice or four times the width look so"
    for name, shard in corpus.shards.items():
        if _is_half_zero(shard):
            return (
                f"in {shorten(name, MAX_SHARD_NAME)} every second token is 0, read as {shard.stored}: ids of twice or "
                "four times the width look so, and other shards do not"
            )
    if corpus.pairs < MIN_PAIRS:
        return ""
    beyond = corpus.huge + corpus.negative
    if corpus.huge >= MOST_HUGE * corpus.tokens:
        return (
            f"{beyond:,} of {corpus.tokens:,} ids, read as {corpus.stored}, are larger than any vocabulary: ids of "
            "half the width, or of the other byte order, look so"
        )
    if corpus.used >= MIN_USED and not corpus.occurs_from(IDS_IN_TWO_BYTES):
        table = np.zeros(IDS_IN_TWO_BYTES, np.int64)
        table[: len(corpus.counts.counts)] = corpus.counts.counts[:IDS_IN_TWO_BYTES]
        upper, lower = (entropy(table.reshape(256, 256).sum(axis=axis), max(1, table.sum())) for axis in (1, 0))
        if lower + LEAST_BITS < upper:
            return (
                f"the lower byte of ids holds {lower:.1f} bits and the upper one {upper:.1f}: of ids in the other byte "
                "order it is so, as common ids are small"
            )
    return ""


def _is_half_zero(counts: CorpusCounts | ShardCounts) -> bool:
    """Return whether every second token is 0, and the others are not."""
    if counts.pairs < MIN_PAIRS:
        return False
    shares = sorted(zeros / counts.pairs for zeros in counts.zeros)
    return shares[1] >= ALL_ZERO and shares[0] <= MOST_ZERO


# Documents cut at one length, in order of their length or source, and what repeats.


@batch_check(
    severity="warning",
    why="What follows in these documents is never trained on, and the model sees texts that break off.",
    fix="Tokenize without truncation, join documents with end tokens, and cut windows from the stream.",
    fixes={"Transformers": "tokenize without truncation=True, then group_texts.", "TRL": 'packing_strategy="wrapped".'},
    quotes=("trl_maxlen_discard",),
    purposes=("pretraining",),
    whole=True,
)
def documents_truncated(batch: Batch) -> Evidence | None:
    """Many documents have exactly the greatest length, far more than any length just below it.

    A tokenizer that adds the end token itself cuts the text before it, so that the end token may stand there too. Where
    a packer states the documents of its rows, it is a remark: TRL's `bfd_split` splits long ones and loses nothing.

    Not this when: all rows have that length, as windows of a stream have; long documents were split, and none was lost.
    """
    corpus = batch.corpus
    if corpus is None or corpus.documents < MIN_DOCUMENTS:
        return None
    cut = corpus.cut_documents
    last, count = _top(corpus.last)
    ends: Iterable[int] = batch.ends or ([last] if count >= corpus.documents / 2 else [])
    if not cut:
        return None
    ended = sum(corpus.longest_last[end] for end in ends) >= cut / 2
    with_end = ", and the end token is the last of them" if ended else ""
    return batch_evidence(
        f"{cut:,} of {corpus.documents:,} documents have exactly {corpus.longest:,} tokens, the greatest length"
        f"{with_end}; they are cut there, or split and go on elsewhere",
        values={"documents": cut, "length": corpus.longest},
        severity="info" if batch.document_lengths is not None and not ended else None,
    )


MIN_SORTED_SHARE = 0.98
"""Share of neighbours that rise, or fall, among those that differ. Chosen: several sorted files are joined."""
MIN_DIFFERENT = 10
"""Neighbours that differ in length. Chosen: unsorted lengths hardly ever rise so often without falling."""
_DIGITS = re.compile(r"\d+")
"""What the names of the shards of one source differ in."""
LEAST_BLOCKS = 4
"""Stretches of documents that are compared. Chosen: fewer are too few pairs."""
TIMES_WITHIN = 2.0
"""Distance of stretches over that of the halves of one. Chosen: shuffled documents show 1."""
LEAST_DISTANCE = 0.03
"""Jensen-Shannon divergence in bits by which stretches are farther apart than halves of one. Chosen: as above."""


@batch_check(
    severity="warning",
    why="A trainer that reads the corpus in its order sees one kind of batch after the other, and forgets.",
    fix="Shuffle documents over all sources when the corpus is written, or see that the loader does.",
    quotes=("slavv_shuffle",),
    purposes=("pretraining",),
    whole=True,
)
def corpus_sorted(batch: Batch) -> Evidence | None:
    """Documents rise or fall in length, or their ids change along the corpus, as where one source follows another.

    Where the files of a folder have different names, as sources have that a loader mixes, it is a remark. So it is
    where rows are padded: a loader groups the rows of a batch by length.

    Not this when: rows are windows of a stream; there are few documents. A loader that shuffles mends it.
    """
    corpus = batch.corpus
    if corpus is None or corpus.is_stream or corpus.documents < MIN_DOCUMENTS:
        return None
    found = order_by_length(corpus)
    if found:
        of_batch = any(side.padded and bool((side.ids.lengths > side.lengths).any()) for side in batch.sides)
        why = "; their rows are padded, as where a loader groups rows by length" if of_batch else ""
        summary = f"the documents are sorted by length, {found}{why}"
        return batch_evidence(summary, severity="info" if of_batch else None)
    between, within = corpus.composition.distances()
    if is_by_source(corpus):
        named = len({_DIGITS.sub("", name) for name in corpus.shards}) > 1
        files = "; its files have different names, as sources have that a loader mixes" if named else ""
        return batch_evidence(
            f"documents of a kind stand together: stretches of the corpus differ by {between:.2f} bits a token, "
            f"the two halves of a stretch by {within:.2f}{files}",
            values={"between": between, "within": within},
            severity="info" if named else None,
        )
    return None


def order_by_length(corpus: CorpusCounts) -> str:
    """Return in which order documents are sorted by length; empty if they are not."""
    different = corpus.rising + corpus.falling
    if corpus.is_stream or different < MIN_DIFFERENT:
        return ""
    if corpus.rising >= MIN_SORTED_SHARE * different:
        return "shortest first"
    return "longest first" if corpus.falling >= MIN_SORTED_SHARE * different else ""


def is_by_source(corpus: CorpusCounts) -> bool:
    """Return whether stretches of the corpus differ more than their halves do."""
    between, within = corpus.composition.distances()
    enough = len(corpus.composition.blocks) >= LEAST_BLOCKS and not corpus.is_stream
    return enough and between >= TIMES_WITHIN * within and between - within >= LEAST_DISTANCE


MIN_PASSAGES = 200
"""Passages that are compared. Chosen: of fewer a single text that is quoted is a large share."""
SOME_REPEATED = 0.03
"""Share of repeated passages that is worth a remark. Chosen: collections of web text in use repeat some in a hundred
(https://arxiv.org/abs/2107.06499)."""
MANY_REPEATED = 0.1
"""Share of repeated passages that does harm. Chosen: above what collections in use repeat."""


@batch_check(
    severity="warning",
    why="What stands in the corpus often is learnt by heart, and costs computation that other text would use.",
    fix="Find out whose text it is: boilerplate, licences, a source twice in other pieces; drop it.",
    quotes=("karpathy_recipe_inspect_data",),
    purposes=("pretraining",),
    whole=True,
)
def passages_repeated(batch: Batch) -> Evidence | None:
    """Passages of 32 tokens occur again, in rows that are no copies of another row.

    From 3 % it is a remark, from 10 % a warning. The shares were chosen by hand.

    Not this when: whole rows are the same (`duplicate_rows`); one token stands several times in a row.
    """
    overlap = batch.overlap
    if overlap is None or overlap.passages < MIN_PASSAGES or overlap.example is None or not len(overlap.example):
        return None
    share = overlap.repeated / overlap.passages
    if share < SOME_REPEATED:
        return None
    row, first = overlap.example[0].tolist()
    return batch_evidence(
        f"{share:.0%} of the passages of 32 tokens stand in the corpus before (row {row} has one of row {first})",
        np.array(sorted({row, first}), np.int64),
        values={"share": share},
        severity=None if share >= MANY_REPEATED else "info",
    )
