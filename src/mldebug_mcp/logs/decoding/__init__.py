"""Bytes → values and records, for the formats that need more than a line at a time: JSON, protobuf, polars' tables."""
