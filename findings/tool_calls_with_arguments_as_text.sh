#!/usr/bin/env bash
# Tool calls in OpenAI's form train a model to write backslashes, for some templates, and to call nothing, for others.
#
# Guess: a template takes the arguments of a call as a mapping and as JSON text, OpenAI's form, and writes one JSON
#        for both; a template without tools stops at a call.
# Seen:  Qwen2.5, Llama 3.1 and gpt-oss encode the text once more: the model learns "{\"city\": ...}", which no parser
#        of calls takes for arguments. Gemma 4 writes double braces. Qwen3 writes right JSON for both, and GLM stops.
#        DeepSeek V3 takes the text alone, and TRL's training template for it the mapping alone: what one
#        writes right, the other encodes or refuses. Phi-3.5, Llama 3 and Qwen2.5-VL leave the call out, and train on an
#        empty answer. Losses fall in each case.
# With:  transformers 5.24.0, tokenizers 0.23.3, the templates in trl 1.16.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q transformers==5.24.0 tokenizers==0.23.3 jinja2==3.1.6 2>/dev/null
"$folder/env/bin/pip" install -q --no-deps trl==1.16.0 2>/dev/null
cd "$folder"
env/bin/python - 2>/dev/null <<'PYTHON' | tee seen.txt
import importlib.util
import json
import pathlib
import re

from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast

templates = pathlib.Path(importlib.util.find_spec("trl").origin).parent / "chat_templates"
tokenizer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.BPE()), bos_token="<s>", eos_token="</s>")
city = {"city": "Paris"}
schema = {"type": "object", "properties": {"city": {"type": "string", "description": "A city."}}}
tools = [{"type": "function", "function": {"name": "weather", "description": "The weather.", "parameters": schema}}]


def written(template, arguments):
    call = {"type": "function", "id": "abcdefghi", "function": {"name": "weather", "arguments": arguments}}
    messages = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "", "tool_calls": [call]}]
    try:
        text = tokenizer.apply_chat_template(messages, chat_template=template, tools=tools, tokenize=False)
    except Exception as error:
        return type(error).__name__
    found = re.search(r"[^\s>a-z]*(city[^\n<]{0,7})?Paris[^\sa-z<]*", text)
    return found.group() if found else "no call"


for name in (
    *("qwen3", "qwen2_5", "llama3_1", "gptoss", "gemma4", "deepseekv3", "deepseekv3_training"),
    *("glm4moe", "phi3_5", "llama3", "qwen2_5_vl"),
):
    template = (templates / f"{name}.jinja").read_text()
    print(name, "| mapping:", written(template, city), "| text:", written(template, json.dumps(city)))
PYTHON
diff seen.txt - <<'SEEN' && echo "as found"
qwen3 | mapping: {"city": "Paris"}} | text: {"city": "Paris"}}
qwen2_5 | mapping: {"city": "Paris"}} | text: "{\"city\": \"Paris\"}"}
llama3_1 | mapping: {"city": "Paris"}} | text: "{\"city\": \"Paris\"}"}
gptoss | mapping: {"city": "Paris"} | text: "{\"city\": \"Paris\"}"
gemma4 | mapping: Paris | text: {{"city": "Paris"}}
deepseekv3 | mapping: TypeError | text: {"city": "Paris"}
deepseekv3_training | mapping: {"city": "Paris"} | text: "{\"city\": \"Paris\"}"
glm4moe | mapping: Paris | text: UndefinedError
phi3_5 | mapping: no call | text: no call
llama3 | mapping: no call | text: no call
qwen2_5_vl | mapping: no call | text: no call
SEEN
