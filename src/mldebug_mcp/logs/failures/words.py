"""What errors, and the lines around them, look like: the patterns by which `reader` goes."""

from __future__ import annotations

import re

EXCEPTION = re.compile(r"(?P<type>[A-Za-z_][\w.]{0,150})(?::(?: |$)|$)")
BARE_EXCEPTION = re.compile(
    r"(?P<type>(?!nccl[A-Z])(?:\w{1,60}\.){0,8}\w{0,60}(?:Error|Exception|Interrupt|ArrowInvalid|OutOfResources|BackendCompilerFailed|Unsupported)|"
    r"(?:\w{1,60}\.){1,8}_?(?:exc|errors?|exceptions?)\.[A-Z]\w{0,60})(?::(?: |$)|$)"
)
CPP_EXCEPTION = re.compile(
    r"(?:libc\+\+abi: )?terminat(?:e called after throwing an instance of '|ing .{0,40}exception of type )"
    r"(?P<type>[\w:]{1,150}\w)"
)
"""What a process prints that ends in an exception of C++; its message stands below, after `what():`."""
WITHOUT_MESSAGE = re.compile(CPP_EXCEPTION.pattern + r"[' .]*$")
"""... and nothing more: what was thrown has been printed above, by whatever threw it."""
CARRIER = re.compile(r"(?:\w{1,60}\.){0,6}(?:UnfilteredStackTrace|JaxStackTraceBeforeTransformation): (?=\S)")
"""What stands before an exception whose stack JAX shows whole."""
FATAL = re.compile(
    r"(?P<type>Fatal Python error|LLVM ERROR): |(?P<logged>F\d{4} [\d:.]{8,30} +\d{1,9} [\w./]{1,80}:\d{1,6}\] |"
    r"\[LightGBM\] \[Fatal\] )"
)
"""What the interpreter, the compiler or a logger of C++ prints before it stops the process: an error, whatever follows.
"""
LOGGED = re.compile(
    r".{0,160}?\b(?:ERROR|CRITICAL|FATAL|[Ff]ailed)\b.{0,120}?(?<![\w'\"(])(?:[a-z_]\w{0,40}\.){0,6}"
    r"(?P<type>[A-Z]\w{1,60}(?:Error|Exception)): \S"
)
"""A line in which a logger tells of an exception without its traceback."""
ERRORS = (BARE_EXCEPTION, CPP_EXCEPTION, FATAL, LOGGED)
"""What makes a line an error outside a traceback, known or not."""
WRAPPERS = re.compile(
    r"RemoteTraceback|RayTaskError|RayActorError|ActorDiedError|ProcessRaisedException|ChildFailedError|"
    r"SimplifiedTraceback|UnfilteredStackTrace|JaxStackTraceBeforeTransformation"
)
CARRIES = re.compile(r"\w{1,80}: The following operation failed in the TorchScript interpreter")
"""The message of an exception that only carries another one, which stands below it."""
GOES_ON = re.compile(r":$|Exception encountered when calling .{1,200}[.)]$")
"""How a message ends that goes on below a blank line: "Graph execution error:", Keras naming the layer that failed."""
EDITOR = re.compile(r"Exception has occurred: (?P<type>\w{1,80}(?:\.\w{1,80}){0,6})\s*$")
"""How an editor (VS Code) heads an exception, whose message stands in the next line."""
SIGNS = (
    "Traceback", '  File "',
    "rror", "xception", "emory", "NCCL", "CUD", "CUBLAS", "illed", "ignal", "SIG", "Segmentation", "atchdog", "Xid",
    "ECC", "oom", "OOM", "ailed", "Warning", "etected", "minimum", "padding", "Token indices", "Some weights", "DUE TO",
    "incompatible", "forked", "ran out of", "hit config", "untagged", "undefined symbol", "fatbin", "No space", "quota",
    "nable", "annot", "upported", "not found", "bbox", "assistant_", "xitcode", "exit status", "unallocated",
    "compiled using", "fallen off", "clients joined", "no chat", "is null", "uncorrectable", "already", "onnection",
    "Broken pipe", "Invalid", "ambiguous", "RESOURCE", "not compiled", "EOS token", "EOT token", "does not", "must be",
    "exc.", "Assertion `", "libdevice", "are not used by", "not supported", "no longer", "CuDNN", "bad_alloc",
    "terminate called", "terminating due", "oss is n", "oss is N", "oss is i", "oss is -", "iverged", "EADDRINUSE",
    "cache_size_limit", "Root Cause", "upsertBucket", "low on resource", "│ /", "│ C:", "│ D:", "halted", "an't open",
    "llegal", "LLVM", "[Fatal]", "not recognized", "项识别", "外部命令", "srun: ", "nterrupt", "free()", "malloc()",
    "orrupt", "smashing", "ProcessPool", "not compatible", "Exception encountered", "xit code", "Tcl_Async",
)  # fmt: skip
LOG_LINE = re.compile(
    r"\[?\d{4}[-/]\d\d[-/]\d\d[ T_]|\[?\d\d/\d\d/\d{4}[ ,]|\[?\d\d:\d\d:\d\d|"
    r"\[?(?:INFO|DEBUG|WARN|ERROR|CRITICAL|FATAL)|\[?[IWEF]\d{3,4} |"
    r"\S{1,80}:\d+:\d+ \[\d+\] NCCL |.{0,40}\d%\|| {0,4}\d{1,3}% |"
    r"(?:Aborted|Killed|Segmentation fault|Bus error)\b|-{20,}$"
)
"""How a line begins that a logger, a progress bar or a shell wrote: it goes on with no message above it."""
GRAPH = "Detected at node"
"""TensorFlow's list of where the nodes of a graph were made: frames, but no traceback; the message follows `Node:`."""
RAISE = re.compile(r"\s{0,80}(?:-{1,6}> ?\d{1,6} )?\s{0,80}raise \w")
"""Code that raises an error: the error itself stands below."""
NOT_A_FAILURE = re.compile(r"[Rr]etrying|[Rr]etry in")
RANK_NAMED = re.compile(r"\b[Rr]ank[ =:]{0,2}(\d{1,6})\b")
ROOT_CAUSE = "Root Cause (first observed failure)"
ROOT_RANK = re.compile(r"\s*rank\s{0,10}:\s{0,4}(\d{1,6})")
LINE_END = re.compile(r"\\{1,2}n")
"""How a line ends inside a string of JSON."""
CHAINS = ("During handling of the above exception", "The above exception was the direct cause")
WITHOUT_DIGITS = str.maketrans("", "", "0123456789.")
