"""Tracebacks and error messages in a log → failures, with their frames and ranks.

`line_prefixes` tells the streams of ranks apart, `frame_lines` reads a line of a traceback, `words` knows what an error
looks like, and `reader` puts them together into what `failure` describes.
"""
