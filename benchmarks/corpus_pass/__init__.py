"""How fast a corpus is passed over, beside numpy and the library that wrote it."""
