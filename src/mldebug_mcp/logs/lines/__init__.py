"""Lines of text → records. `formats.text_log` offers each line to these modules in turn.

- Any line by itself: `prefixes` takes off what launchers and loggers put before it, `written_out` gives plain names to
  what has none, `counters` finds where the run is, `phases` whether it is evaluated, `pairs` the metrics; `parsed` is
  what comes of it.
- Other shapes: `bars`, `dicts`, `histories`; over several lines `rich_bars`, `boxes`, `tables`, which `structures`
  gathers.
- Lines → records: `assembler` puts what lines say together, `drawn` takes the last drawing of a bar, `printed_dicts`
  gathers dicts, `bar_steps` and `epoch_batches` give them their steps, `rounded_steps` undoes "6K", `leftovers` keeps
  what has no counter, `ranks` leaves out what several ranks print alike.
- Many lines alike: `skeletons` takes the numbers out of a block of lines, `shapes` learns what those of one skeleton
  say, `memory` keeps that, `alike` takes the lines whose shape is known, and hands the others back to be read;
  `box_shapes` does so for boxes and `table_rows` for rows of tables; `said` is what a line says by itself, `records`
  takes it.
- `frameworks` says whose lines they are.
"""
