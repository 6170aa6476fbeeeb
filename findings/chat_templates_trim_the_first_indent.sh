#!/usr/bin/env bash
# Answers that begin with indented code lose the indent of their first line, by the chat template of some models.
#
# Guess: a template puts marks around an answer, and leaves the answer itself as the file has it.
# Seen:  the templates of Llama 3, Gemma 3, GLM 4 and Qwen3.6 strip each answer: "    a = 1" becomes "a = 1", so that
#        the two lines of one block no longer stand at one depth. The other five leave the answer as it was. So one file
#        trains on sound or on broken code, by model.
# With:  transformers 5.24.0, tokenizers 0.23.3, the templates in trl 1.16.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q transformers==5.24.0 tokenizers==0.23.3 jinja2==3.1.6 2>/dev/null
"$folder/env/bin/pip" install -q --no-deps trl==1.16.0 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import pathlib
import site

from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast

(packages,) = site.getsitepackages()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.BPE()), bos_token="<bos>", eos_token="<eos>")
answer = "    a = 1\n    return a\n"
messages = [{"role": "user", "content": "Go on: def f():"}, {"role": "assistant", "content": answer}]
for name in "qwen2_5 phi3 deepseekv3 gptoss qwen3 llama3_1 gemma3 glm4moe qwen3_6".split():
    template = (pathlib.Path(packages) / "trl/chat_templates" / f"{name}.jinja").read_text()
    text = tokenizer.apply_chat_template(messages, chat_template=template, tokenize=False)
    found = text[text.index("def f():") :]
    (first,) = [line for line in found.splitlines() if "a = 1" in line]
    print(name, "| the answer is as it was", answer in found, "| the first indent", "    a = 1" in first)
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
qwen2_5 | the answer is as it was True | the first indent True
phi3 | the answer is as it was True | the first indent True
deepseekv3 | the answer is as it was True | the first indent True
gptoss | the answer is as it was True | the first indent True
qwen3 | the answer is as it was True | the first indent True
llama3_1 | the answer is as it was False | the first indent False
gemma3 | the answer is as it was False | the first indent False
glm4moe | the answer is as it was False | the first indent False
qwen3_6 | the answer is as it was False | the first indent False
SEEN
