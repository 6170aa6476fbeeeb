#!/usr/bin/env bash
# Answers that are dates are trained on with a time of day that no file has.
#
# Guess: a string in a file of JSON lines is a string for `load_dataset`, in conversations, too.
# Seen:  where each string of a field is a date, the field becomes a timestamp, at any depth. A chat template then
#        writes `2021-05-04 00:00:00` where the file has `2021-05-04`. One other string in the field, and all stay text.
# With:  datasets 5.2.0, jinja2 3.1.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q datasets==5.2.0 jinja2==3.1.6 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import json
from pathlib import Path

import datasets
import jinja2

template = jinja2.Template("{% for turn in messages %}<{{ turn.role }}>{{ turn.content }}{% endfor %}")
for name, answers in {"dates": ["2021-05-04", "1999-12-31"], "and a word": ["2021-05-04", "unknown"]}.items():
    rows = [{"messages": [{"role": "assistant", "content": answer}]} for answer in answers]
    Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    loaded = datasets.load_dataset("json", data_files="rows.jsonl", split="train", cache_dir=name)
    print(name, "|", template.render(rows[0]), "|", template.render(loaded[0]))
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
dates | <assistant>2021-05-04 | <assistant>2021-05-04 00:00:00
and a word | <assistant>2021-05-04 | <assistant>2021-05-04
SEEN
