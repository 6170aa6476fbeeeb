"""Helper processes, in which the server does what reads strangers' files.

`pool` is the server's side: it starts helpers, gives each one call at a time and ends the one whose call is cancelled,
takes too long or crashes. `helper` is the other side, which gives up its rights first.
"""
