"""Tokenized corpora that the real libraries write, healthy and with a planted fault, and what is found in them."""
