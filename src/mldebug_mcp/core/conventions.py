"""Numbers that libraries, file formats and statistics fix. It imports nothing, so that a start stays fast."""

IGNORED_LABEL = -100
"""Label that the loss skips.

Source: the default `ignore_index` of PyTorch's cross-entropy, used by all of Transformers.

`probe/worker`, which imports nothing of this package, has its own.
"""
STD_PER_MAD = 1.4826
"""Standard deviation of a normal distribution, in median absolute deviations.

Source: 1 / 0.6745, the standard normal's quantile at 3/4.
"""
ZIP_MAGIC = b"PK\x03\x04"
"""First bytes of a zip archive that holds a file.

Source: https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT, section 4.3.7
"""
