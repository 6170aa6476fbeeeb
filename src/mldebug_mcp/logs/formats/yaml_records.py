"""YAML records: a list of mappings that a loop appends to, or a stream of documents, each of them a record.

A list is the document, or stands under a key of it, behind the configuration. Results that RLlib prints have an empty
line between two. Lists of flat mappings (or of mappings in them) are read line by line: a file of any length costs no
more than its lines. Anchors, tags and lists in brackets are not what loops append: such lines are counted and left out.
"""

from __future__ import annotations

from mldebug_mcp.logs.builder import RunBuilder
from mldebug_mcp.logs.json_yaml import (
    listed_records,
    lists_records,
    printed_records,
    prints_records,
    streamed_records,
    streams_records,
)
from mldebug_mcp.logs.log_file import LogFile

NAME = "yaml"


def matches(file: LogFile) -> bool:
    """It is a list of mappings, or has one of records under a key, or is a stream of documents, or printed results."""
    return streams_records(file.head) or lists_records(file.head) or prints_records(file.head)


def read(file: LogFile, builder: RunBuilder) -> None:
    """Put each item of the list, or each document of the stream, into the builder as a record."""
    empty = left = 0
    listed = listed_records if lists_records(file.head) else printed_records
    records = streamed_records if streams_records(file.head) else listed
    for record in records(file.lines()):
        if record is None:
            left += 1
        else:
            empty += not builder.record(record)
    if left:
        builder.note(f"skipped {left} line(s) that are no keys of a record")
    if empty:
        builder.note(f"skipped {empty} record(s) without a number")
