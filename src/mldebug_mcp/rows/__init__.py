"""Which rows of the data were in the batch of a step: read from a recording, or drawn again as the sampler drew them.

Covered: PyTorch's samplers, Accelerate's, the Trainer of Transformers, Lightning with several ranks. What cannot be
known exactly is refused, with the reason and what would make it exact.
"""
