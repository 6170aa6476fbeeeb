"""One training run written in many styles, to test a reader of logs on what it was not written for.

- `story`: a run as facts, under names of our own; `stories`: a dozen made runs. `story_from_records`: a trained one.
- `style`: how it is written; `styles`: the named ones, and any number more by seed.
- `words`: what people call quantities and settings; `settings`, `noise`: what else a log holds.
- `lines`, `templates`, `files`: the forms a record takes; `write`: story + style → files and the truth in them.
- `variants`: changes that must not change what is read. `compare`: what a reader found against the truth; `report`.

Nothing here knows how the reader works, and nothing may: names and forms are those that people and frameworks write.
"""
