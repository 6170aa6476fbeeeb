"""A script → what happens to its models, optimizers and loaders, in order.

The script is followed over abstract values and never run. Local functions and methods are entered with their arguments.
Both branches of a test are taken unless a constant decides it. Each loop is gone through twice.
"""
