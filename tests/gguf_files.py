"""Small GGUF files of random Llama models, by the gguf package's writer."""

import gguf
import numpy as np

N_LAYERS, N_HEADS, N_KV, D_MODEL, D_MLP, D_VOCAB = 2, 4, 2, 32, 64, 8
D_HEAD = D_MODEL // N_HEADS
TOKENS = ["a", "b", "ab", "1", "2", "12", "Ġ", "<|end|>"]
MERGES = ["a b", "1 2"]
TYPES = [1, 1, 1, 1, 1, 1, 1, 3]


def random_tensors(seed: int, *, tied: bool = True) -> dict[str, np.ndarray]:
  """Tensors under their GGUF names, `[out, in]`, in half-rotation order."""
  rng = np.random.default_rng(seed)
  q, kv = N_HEADS * D_HEAD, N_KV * D_HEAD
  shapes = {"token_embd": (D_VOCAB, D_MODEL), "output_norm": (D_MODEL,)}
  if not tied:
    shapes["output"] = (D_VOCAB, D_MODEL)
  for layer in range(N_LAYERS):
    block = {
      "attn_norm": (D_MODEL,),
      "attn_q": (q, D_MODEL),
      "attn_k": (kv, D_MODEL),
      "attn_v": (kv, D_MODEL),
      "attn_output": (D_MODEL, q),
      "ffn_norm": (D_MODEL,),
      "ffn_up": (D_MLP, D_MODEL),
      "ffn_gate": (D_MLP, D_MODEL),
      "ffn_down": (D_MODEL, D_MLP),
    }
    shapes |= {f"blk.{layer}.{name}": shape for name, shape in block.items()}
  return {
    f"{name}.weight": rng.standard_normal(shape, dtype=np.float32)
    for name, shape in shapes.items()
  }


def interleave(array: np.ndarray) -> np.ndarray:
  """Rows of q or k as the format has them, written as a loop over rows.

  Rotary plane `i` of a head joins coordinates `i` and `i + d_head / 2`; the
  format puts the two beside each other.
  """
  out = np.empty_like(array)
  for row in range(len(array)):
    head, i = divmod(row, D_HEAD)
    plane, side = i % (D_HEAD // 2), i // (D_HEAD // 2)
    out[head * D_HEAD + 2 * plane + side] = array[row]
  return out


def write(path, tensors, kind="F32", *, vocabulary=True, fields=()) -> None:
  """Writes a file; vectors stay F32, as converters do.

  Args:
    path: of the file.
    tensors: as from `random_tensors`.
    kind: storage type of the matrices.
    vocabulary: whether the tokenizer is written too.
    fields: pairs of key (without "llama.") and unsigned value, added last.
  """
  writer = gguf.GGUFWriter(path, "llama")
  writer.add_block_count(N_LAYERS)
  writer.add_context_length(64)
  writer.add_embedding_length(D_MODEL)
  writer.add_feed_forward_length(D_MLP)
  writer.add_head_count(N_HEADS)
  writer.add_head_count_kv(N_KV)
  writer.add_layer_norm_rms_eps(1e-5)
  writer.add_rope_freq_base(500.0)
  for key, value in fields:
    writer.add_uint32(f"llama.{key}", value)
  if vocabulary:
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(TOKENS)
    writer.add_token_merges(MERGES)
    writer.add_token_types(TYPES)
    writer.add_bos_token_id(7)
  for name, array in tensors.items():
    if ".attn_q." in name or ".attn_k." in name:
      array = interleave(array)
    stored = kind if array.ndim == 2 else "F32"
    number = gguf.GGMLQuantizationType[stored]
    data = gguf.quantize(array, number)
    writer.add_tensor(name, data, raw_dtype=number)
  writer.write_header_to_file()
  writer.write_kv_data_to_file()
  writer.write_tensors_to_file()
  writer.close()
