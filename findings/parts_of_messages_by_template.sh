#!/usr/bin/env bash
# Messages whose text is given in parts are empty for Qwen3, and Python code for Llama 3, Gemma and Nemotron.
#
# Guess: `{"type": "text", "text": "4"}` is the common form of a message: a template takes the text, or raises.
# Seen:  Qwen3's template makes each such message empty: the model is trained to answer nothing. Others write the list as
#        Python or JSON, braces and all, and train on that. Qwen2.5, Phi-3 and DeepSeek raise. Gemma 3 takes the text.
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
messages = [
    {"role": "user", "content": [{"type": "text", "text": "2 + 2?"}]},
    {"role": "assistant", "content": [{"type": "text", "text": "4"}]},
]
for name in "gemma3 qwen3 qwen3_instruct_2507 llama3_1 gemma nemotron_3_nano lfm2 qwen2_5 phi3 deepseekv3".split():
    template = (pathlib.Path(packages) / "trl/chat_templates" / f"{name}.jinja").read_text()
    try:
        text = tokenizer.apply_chat_template(messages, chat_template=template, tokenize=False)
        print(name, "|", text.splitlines()[-1])
    except TypeError as error:
        print(name, "| raises", error)
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
gemma3 | 4<end_of_turn>
qwen3 | <|im_end|>
qwen3_instruct_2507 | <|im_end|>
llama3_1 | [{'type': 'text', 'text': '4'}]<|eot_id|>
gemma | [{'type': 'text', 'text': '4'}]<end_of_turn>
nemotron_3_nano | [{'type': 'text', 'text': '4'}]<|im_end|>
lfm2 | [{"type": "text", "text": "4"}]<|im_end|>
qwen2_5 | raises can only concatenate str (not "list") to str
phi3 | raises can only concatenate str (not "list") to str
deepseekv3 | raises can only concatenate str (not "list") to str
SEEN
