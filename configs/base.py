"""Where every config field is born, with its default, unit and values.

A study's file takes `get_config` and changes fields with `override`; no other
file adds one. The defaults are the 12-layer model of the geometry study, with
nothing designed. A None is a value to be settled: each comment says how.
"""

from collections.abc import Mapping
from typing import Any

from ml_collections import ConfigDict
from ml_collections.config_dict import placeholder


def get_config() -> ConfigDict:
  """The base config: locked, so that a misspelt field is an error."""
  config = ConfigDict()
  config.name = "learned"  # of the row and its scale, for labels
  config.seed = 42  # of the initial parameters and the batches; any integer
  config.data = _data()
  config.model = _model()
  config.model.write = _write()
  config.model.read = _read()
  config.optimizer = _optimizer()
  config.train = _train()
  config.mesh = _mesh()
  return config.lock()


def _data() -> ConfigDict:
  """What is read, and how."""
  data = ConfigDict()
  # A folder that prepare_corpus.py made, inside `data.folder`; or "toy",
  # "keys", "keys-then-toy", "rules-hierarchical" or "rules-modular", which are
  # generated. "R" has 0.2e9 tokens, "S" 1.07e9.
  data.corpus = "R"
  data.folder = "corpora"  # where the corpora are
  # "replacement": sequences start anywhere, again and again; "once": every
  # token once, in windows whose order the seed draws.
  data.sampling = "replacement"
  # Share of a folder's sequences into which a code and a question for it are
  # put (headjax/data/keys.py); 0 to 1.
  data.code_share = 0.0
  return data


def _model() -> ConfigDict:
  """The architecture; widths in coordinates, lengths in tokens."""
  model = ConfigDict()
  model.n_layers = 12  # at least 1
  model.n_heads = 12  # query heads a layer, at least 1
  model.n_kv_heads = placeholder(int)  # a divisor of n_heads; None: n_heads
  model.d_model = 768  # of the stream
  model.d_head = 64  # of a head
  model.d_mlp = 3072  # hidden; 0 if and only if mlp is "none"
  model.d_vocab = 50257  # tokens; 50257 is GPT-2's vocabulary
  model.n_ctx = 512  # longest sequence, tokens
  model.norm = "layernorm"  # "layernorm", "rmsnorm", "none"
  model.norm_eps = 1e-5  # added to the variance or mean square
  model.positions = "learned"  # "learned", "rotary", "none"
  model.rotary_theta = 1e4  # base of the rotary frequencies
  model.mlp = "gelu_tanh"  # "gelu", "gelu_tanh", "relu", "swiglu", "none"
  model.qkv_bias = True  # of q, k and v
  model.out_bias = True  # of the attention output
  model.mlp_bias = True  # of the MLP's matrices
  model.tied = True  # whether the unembedding is the transposed embedding
  model.causal = True  # False: every position attends to every other
  # Tokens that a query sees, by layer, 0 for all; None: 0 in every layer.
  model.windows = placeholder(tuple)
  model.value_adapter = 0  # hidden width of a nonlinear path to the values
  # "softmax", or "screening", where each key passes or fails by itself.
  model.attention = "softmax"
  model.d_key = placeholder(int)  # width of q and k; None: d_head
  # Tokens; of a screening model's heads, those with a narrower window also see
  # where a key stands.
  model.screening_window = 256
  return model


def _write() -> ConfigDict:
  """Where heads write: the design of W_O, frozen unless it is learned."""
  write = ConfigDict()
  # "learned", "axis", "rotated", "half_shared", "routed".
  write.kind = "learned"
  # g of a frozen write. None: as strong as a learned W_O at its start,
  # 0.02 sqrt(d_model / (2 n_layers)), over the root of the live share.
  write.scale = placeholder(float)
  # Kerdock member of layer l, for "rotated" and "half_shared": "common" is
  # member 0, "layer" member l; "none" for the other kinds.
  write.members = "none"
  # Coordinates of a head that are written, 1 to d_head; None: all.
  write.live = placeholder(int)
  # For "routed": "sum-hub", "split-cycle", "angle-split"; else "none".
  write.routing = "none"
  return write


def _read() -> ConfigDict:
  """What heads read of the stream."""
  read = ConfigDict()
  # "free": all of it after one norm; "block": a head's block after a norm of
  # its own; "block_norm": all of it, after a norm of each block.
  read.kind = "free"
  # The blocks of layer l: "axis", of the coordinates; "layer", of Kerdock
  # member l; "shifted", of member l + shift.
  read.members = "axis"
  read.shift = 12  # for "shifted"; n_layers or more: bases that nobody writes
  read.restricted = "QKV"  # inputs that "block" restricts: letters of QKV
  return read


def _optimizer() -> ConfigDict:
  """AdamW, with a linear warm-up and a cosine decay."""
  optimizer = ConfigDict()
  optimizer.peak = 3e-4  # learning rate after the warm-up
  optimizer.final = 3e-5  # learning rate of the last step
  optimizer.warmup = 1000  # steps; 0 starts at the peak
  optimizer.weight_decay = 0.1  # of matrices and embeddings, not of the rest
  optimizer.beta_1 = 0.9  # decay of the mean gradient
  optimizer.beta_2 = 0.95  # decay of the mean squared gradient
  optimizer.epsilon = 1e-8  # added to the root of the mean square
  optimizer.clip = 1.0  # largest global norm of a gradient; 0: no clipping
  return optimizer


def _train() -> ConfigDict:
  """How long, in which portions, with which arithmetic."""
  train = ConfigDict()
  train.steps = 65536  # optimiser steps
  train.batch_size = 32  # sequences of model.n_ctx tokens in a step
  train.accumulate = 1  # portions of a batch, one after the other
  train.dtype = "float32"  # of the activations; "bfloat16" on accelerators
  train.remat = "none"  # "block": recompute each block in the backward pass
  train.unroll = 1  # layers in one turn of the scan; faster, compiles longer
  train.loss_rows = 2048  # rows of logits in a device's memory at once
  train.log_every = 16  # steps between lines of metrics
  train.evaluate_every = 1024  # steps between validation losses; 0: never
  train.evaluate_sequences = 256  # of the validation file, its first
  train.checkpoint_steps = (0, 256, 1024, 4096, 16384, 65536)  # kept; the last
  train.checkpoint_minutes = 15.0  # between others, of which the last is kept
  return train


def _mesh() -> ConfigDict:
  """How many devices share what; the product is the number of devices."""
  mesh = ConfigDict()
  mesh.data = -1  # batches; -1: the devices that are left
  mesh.fsdp = 1  # batches and parameters
  mesh.tensor = 1  # heads and hidden units
  return mesh


def override(config: ConfigDict, differences: Mapping[str, Any]) -> None:
  """Changes fields in place.

  Args:
    config: a config with its own fields only.
    differences: dotted field -> value of the field's type; an int will do for
      a float, and None for a field that is to be settled.

  Raises:
    ValueError: there is no such field, or the value has another type.
  """
  for field, value in differences.items():
    *folders, leaf = field.split(".")
    section = config
    for folder in folders:
      section = section.get(folder) if isinstance(section, ConfigDict) else None
    if not isinstance(section, ConfigDict) or leaf not in section:
      known = ", ".join(fields(config))
      raise ValueError(f"config: no field {field!r}; the fields are {known}")
    try:
      section[leaf] = value
    except TypeError as error:
      kind = section.get_type(leaf).__name__
      raise ValueError(
        f"config.{field}: got {value!r}; expected a value of type {kind}"
      ) from error


def fields(config: ConfigDict, prefix: str = "") -> list[str]:
  """The dotted names of all fields."""
  found = []
  for key in config:
    value = config[key]
    inner = isinstance(value, ConfigDict)
    found += fields(value, f"{prefix}{key}.") if inner else [prefix + key]
  return found
