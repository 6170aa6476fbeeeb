"""Lines of text → records; `formats.text_log` offers each line to these modules in turn.

`counters` finds where the run is, also in bars, `pairs` the metrics, `tables` what is drawn over several lines.
`parsed_line` puts together what one line holds. `assembler`, `drawn_bars` and `records` make records of it.
`skeletons` and `line_shape` tell which lines have one shape, so that many are read at once.
"""
