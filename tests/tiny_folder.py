"""A Hugging Face folder with a random tiny GPT-2 and a word tokenizer."""

import json
import pathlib

import numpy as np
from safetensors.numpy import save_file
from tokenizers import Tokenizer, models, pre_tokenizers

WORDS = "the key keys door doors near by is are old new a".split()
SIZES = {"n_layer": 2, "n_head": 2, "n_embd": 8, "n_positions": 16}


def tensors(seed: int = 0) -> dict[str, np.ndarray]:
  """Random weights under GPT-2's names."""
  d, layers = SIZES["n_embd"], SIZES["n_layer"]
  shapes = {
    "wte.weight": (len(WORDS) + 1, d),
    "wpe.weight": (SIZES["n_positions"], d),
    "ln_f.weight": (d,),
    "ln_f.bias": (d,),
  }
  block = {
    "ln_1.weight": (d,), "ln_1.bias": (d,),
    "attn.c_attn.weight": (d, 3 * d), "attn.c_attn.bias": (3 * d,),
    "attn.c_proj.weight": (d, d), "attn.c_proj.bias": (d,),
    "ln_2.weight": (d,), "ln_2.bias": (d,),
    "mlp.c_fc.weight": (d, 4 * d), "mlp.c_fc.bias": (4 * d,),
    "mlp.c_proj.weight": (4 * d, d), "mlp.c_proj.bias": (d,),
  }  # fmt: skip
  for layer in range(layers):
    shapes |= {f"h.{layer}.{name}": shape for name, shape in block.items()}
  rng = np.random.default_rng(seed)
  return {
    name: rng.normal(size=shape).astype(np.float32)
    for name, shape in shapes.items()
  }


def write(folder: pathlib.Path, **changed: np.ndarray) -> pathlib.Path:
  """Writes the folder; `changed` replaces tensors (dots as double bars)."""
  folder.mkdir(parents=True, exist_ok=True)
  config = SIZES | {
    "architectures": ["GPT2LMHeadModel"],
    "model_type": "gpt2",
    "vocab_size": len(WORDS) + 1,
    "activation_function": "gelu_new",
    "layer_norm_epsilon": 1e-5,
  }
  (folder / "config.json").write_text(json.dumps(config))
  replaced = {name.replace("__", "."): a for name, a in changed.items()}
  save_file(tensors() | replaced, folder / "model.safetensors")
  # A leading space belongs to the word, as in byte-level vocabularies.
  vocabulary = {f" {word}": i for i, word in enumerate(WORDS)}
  vocabulary["?"] = len(WORDS)
  tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="?"))
  tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_next")
  tokenizer.save(str(folder / "tokenizer.json"))
  return folder


def pair(clean: str, reference: str, answer="is", foil="are") -> str:
  """A line of a .jsonl file; prompts get their leading space."""
  texts = {"clean": clean, "reference": reference, "answer": answer}
  texts["foil"] = foil
  return json.dumps({field: f" {text}" for field, text in texts.items()})


PAIRS = [
  pair("the key near the doors", "the keys near the doors"),
  pair("the old key", "the old keys"),
  pair("a door by the new key is old by the door", "a door by the new key "
       "is old by the doors"),
  pair("the doors", "the door", "are", "is"),
]  # fmt: skip
