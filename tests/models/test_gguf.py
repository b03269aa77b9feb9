"""Are GGUF files read right, and wrong ones refused?"""

import gguf as gguf_package
import gguf_files
import numpy as np
import pytest
from one_line import refusal

from headjax.models import gguf, gguf_header

# Half the step of the coarsest of 32 numbers that span about 8.
ERRORS = {"BF16": 2e-2, "F16": 2e-3, "F32": 0.0, "Q4_1": 0.4, "Q8_0": 3e-2}


@pytest.fixture
def path(tmp_path):
  return tmp_path / "tiny.gguf"


@pytest.mark.parametrize("kind", sorted(ERRORS))
def test_weights_come_back_from_every_storage_type(path, kind):
  tensors = gguf_files.random_tensors(0)
  gguf_files.write(path, tensors, kind)
  config, weights, _ = gguf.read_file(path)
  number = gguf_package.GGMLQuantizationType[kind]
  for layer in range(config.n_layers):
    for name, weight in (("ffn_up", "W_in"), ("ffn_down", "W_out")):
      want = tensors[f"blk.{layer}.{name}.weight"]
      got = weights[weight][layer].T
      assert np.abs(got - want).max() <= ERRORS[kind]
      stored = gguf_package.quantize(want, number)
      exact = gguf_package.dequantize(stored, number)
      np.testing.assert_array_equal(got, exact)


def test_heads_are_sliced_and_rotary_order_is_undone(path):
  tensors = gguf_files.random_tensors(1)
  gguf_files.write(path, tensors)
  config, weights, _ = gguf.read_file(path)
  d_head = config.d_head
  for weight, name in (("W_Q", "attn_q"), ("W_K", "attn_k"), ("W_V", "attn_v")):
    stored = tensors[f"blk.1.{name}.weight"]
    for head in range(len(stored) // d_head):
      want = stored[head * d_head : (head + 1) * d_head].T
      np.testing.assert_array_equal(weights[weight][1][:, head], want)
  out = tensors["blk.1.attn_output.weight"]
  for head in range(config.n_heads):
    want = out[:, head * d_head : (head + 1) * d_head].T
    np.testing.assert_array_equal(weights["W_O"][1][head], want)


def test_config_is_that_of_the_metadata(path):
  gguf_files.write(path, gguf_files.random_tensors(0))
  config, weights, _ = gguf.read_file(path)
  assert (config.n_layers, config.n_heads, config.n_kv_heads) == (2, 4, 2)
  assert (config.d_model, config.d_head, config.d_mlp) == (32, 8, 64)
  assert (config.d_vocab, config.n_ctx, config.rotary_theta) == (8, 64, 500.0)
  assert config.norm_eps == np.float32(1e-5)
  assert config.tied and "W_U" not in weights


def test_output_tensor_makes_the_model_untied(path):
  tensors = gguf_files.random_tensors(0, tied=False)
  gguf_files.write(path, tensors)
  config, weights, _ = gguf.read_file(path)
  assert not config.tied
  np.testing.assert_array_equal(weights["W_U"], tensors["output.weight"].T)


def test_requested_type_is_the_type_of_the_weights(path):
  gguf_files.write(path, gguf_files.random_tensors(0))
  _, weights, _ = gguf.read_file(path, "float64")
  assert {array.dtype for array in weights.values()} == {np.dtype("float64")}


def test_header_agrees_with_the_reader_of_the_gguf_package(path):
  gguf_files.write(path, gguf_files.random_tensors(0), "Q8_0")
  header = gguf_header.read_header(path, gguf.KINDS)
  reader = gguf_package.GGUFReader(path)
  fields = {
    key: field.contents()
    for key, field in reader.fields.items()
    if not key.startswith("GGUF.")
  }
  assert header.fields.keys() == fields.keys()
  for key, want in fields.items():
    assert np.array_equal(header.fields[key], want), key
  assert header.tensors.keys() == {tensor.name for tensor in reader.tensors}
  for tensor in reader.tensors:
    ours = header.tensors[tensor.name]
    assert ours.shape == tuple(tensor.shape.tolist()[::-1])
    assert ours.rows.tobytes() == tensor.data.tobytes()


def test_unsupported_storage_type_is_refused_by_name(path):
  gguf_files.write(path, gguf_files.random_tensors(0), "Q4_0")
  with refusal("token_embd.weight", "type Q4_0", "Q8_0"):
    gguf.read_file(path)


def test_unknown_storage_type_is_refused_by_number(path):
  gguf_files.write(path, gguf_files.random_tensors(0))
  raw = bytearray(path.read_bytes())
  name = b"token_embd.weight"
  kind_at = raw.index(name) + len(name) + 4 + 2 * 8
  raw[kind_at : kind_at + 4] = (99).to_bytes(4, "little")
  path.write_bytes(raw)
  with refusal("token_embd.weight", "type 99"):
    gguf.read_file(path)


def test_missing_tensor_is_named_with_its_shape(path):
  tensors = gguf_files.random_tensors(0)
  del tensors["blk.1.ffn_up.weight"]
  gguf_files.write(path, tensors)
  with refusal("blk.1.ffn_up.weight", "no tensor", "(64, 32)"):
    gguf.read_file(path)


def test_extra_tensor_is_named(path):
  tensors = gguf_files.random_tensors(0)
  tensors["rope_freqs.weight"] = np.ones(4, np.float32)
  gguf_files.write(path, tensors)
  with refusal("rope_freqs.weight", "expected none"):
    gguf.read_file(path)


def test_wrong_shape_is_named_with_both_shapes(path):
  tensors = gguf_files.random_tensors(0)
  tensors["blk.0.attn_k.weight"] = tensors["blk.0.attn_q.weight"]
  gguf_files.write(path, tensors)
  with refusal("blk.0.attn_k.weight", "got shape (32, 32)", "(16, 32)"):
    gguf.read_file(path)


@pytest.mark.parametrize(
  ("key", "value"),
  [
    ("rope.dimension_count", 4),
    ("expert_count", 8),
    ("attention.value_length", 16),
  ],
)
def test_variants_that_change_the_forward_are_refused(path, key, value):
  tensors = gguf_files.random_tensors(0)
  gguf_files.write(path, tensors, fields=[(key, value)])
  with refusal(f"llama.{key}", f"got {value}"):
    gguf.read_file(path)


def test_other_architectures_are_refused_by_name(path):
  writer = gguf_package.GGUFWriter(path, "qwen2")
  writer.write_header_to_file()
  writer.write_kv_data_to_file()
  writer.write_tensors_to_file()
  writer.close()
  with refusal("general.architecture", "qwen2", "llama"):
    gguf.read_file(path)


@pytest.mark.parametrize("keep", [0, 3, 20, 200, 500, 600, 700, 1000, -1])
def test_truncated_file_is_refused(path, keep):
  gguf_files.write(path, gguf_files.random_tensors(0))
  path.write_bytes(path.read_bytes()[:keep])
  with refusal(str(path), "truncated"):
    gguf.read_file(path)


def test_other_files_are_refused(path):
  path.write_bytes(b"PK\x03\x04" * 20)
  with refusal(str(path), "no GGUF mark"):
    gguf.read_file(path)


def test_missing_file_is_refused(path):
  with refusal(str(path), "readable GGUF file"):
    gguf.read_file(path)


def test_unsupported_version_is_refused(path):
  gguf_files.write(path, gguf_files.random_tensors(0))
  raw = path.read_bytes()
  path.write_bytes(raw[:4] + (1).to_bytes(4, "little") + raw[8:])
  with refusal("version", "got 1", "2 or 3"):
    gguf.read_file(path)


@pytest.mark.parametrize(
  ("kind", "sizes", "got"),
  [
    ("F32", (0, 2**64 - 1), "shape (18446744073709551615, 0)"),
    ("F32", (2**63, 2**63), "truncated"),
    ("Q8_0", (48, 2), "rows of 48 in blocks of 32"),
  ],
)
def test_impossible_shapes_are_refused_by_name(path, kind, sizes, got):
  gguf_files.write(path, gguf_files.random_tensors(0), kind)
  raw = bytearray(path.read_bytes())
  name = b"token_embd.weight"
  at = raw.index(name) + len(name) + 4
  raw[at : at + 16] = b"".join(n.to_bytes(8, "little") for n in sizes)
  path.write_bytes(raw)
  with refusal("token_embd.weight", got):
    gguf.read_file(path)


def test_repeated_field_is_refused(path):
  gguf_files.write(path, gguf_files.random_tensors(0))
  raw = path.read_bytes()
  assert len(b"llama.rope.freq_base") == len(b"tokenizer.ggml.model")
  raw = raw.replace(b"llama.rope.freq_base", b"tokenizer.ggml.model")
  path.write_bytes(raw)
  with refusal("a second field 'tokenizer.ggml.model'"):
    gguf.read_file(path)
