"""Is everything in a folder on its page, and nothing that needs a network?"""

import base64
import hashlib
import io
import json
import re

import numpy as np
import pytest
import xarray as xr
from one_line import refusal
from PIL import Image

from headjax import results
from headjax.reports.html import commands, packing
from headjax.reports.html.page import page, write_page

PNG = base64.b64decode(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9Q"
  "DwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
RANDOM = np.random.default_rng(0)


def save(path, model="m", task="sva", **arrays):
  if not arrays:
    effect = RANDOM.normal(size=(4, 2, 3))
    arrays["effect"] = (("example", "layer", "head"), effect, {"units": "nats"})
  names = ("source_layer", "source_head", "layer", "head")
  coords = {k: arrays.pop(k) for k in names if k in arrays}
  attrs = {results.MARK: "0", "model": model, "task": task, "n": np.nan}
  attrs |= {"model_digest": model, "pairs_digest": task}
  path.parent.mkdir(parents=True, exist_ok=True)
  results.save(xr.Dataset(arrays, coords, attrs), path)


@pytest.fixture
def folder(tmp_path):
  top = tmp_path / "found"
  save(top / "effects.nc")
  (top / "t.csv").write_text("a,b\n1,2\n3,4\n")
  (top / "f.png").write_bytes(PNG)
  commands.record(top, "x.py", ["--out", "a b"], tables="make again")
  return top


def data_of(text):
  return json.loads(re.search(r'id="data">(.*?)</script>', text, re.S).group(1))


def test_a_page_has_all_that_the_folder_has(folder):
  text = page([folder])
  [entry] = data_of(text)["maps"]
  found = results.load(folder / "effects.nc").effect
  np.testing.assert_allclose(
    packing.unpack(entry["mean"]), found.mean("example"), rtol=1e-6
  )
  np.testing.assert_allclose(
    packing.unpack(entry["examples"]), found, rtol=1e-3
  )
  assert base64.b64encode(PNG).decode() in text
  assert "<h3>t</h3>" in text and "<code>make again</code>" in text
  assert "python x.py --out &#x27;a b&#x27;" in text
  assert text.isascii() is False and "$" not in text.split("<script>")[0]


def test_nothing_on_the_page_is_elsewhere(folder):
  text = page([folder])
  without = text.replace(page.__globals__["get_plotlyjs"](), "")
  assert "plotly" not in without.lower().split("<script>")[0]
  for found in re.findall(r'(?:src|href)="([^"]*)"', without):
    assert found.startswith(("data:", "#"))
  assert "://" not in without and "default-src 'none'" in without


def test_no_script_runs_but_those_of_the_page(folder):
  text = page([folder])
  [allowed] = re.findall(r"script-src ([^\"]*)\"", text)
  ran = re.findall(r"<script>(.*?)</script>", text, re.S)
  hashes = [hashlib.sha256(script.encode()).digest() for script in ran]
  coded = [base64.b64encode(digest).decode() for digest in hashes]
  assert allowed == " ".join(f"'sha256-{code}'" for code in coded)


def test_the_largest_parts_are_left_out_first_and_named(folder):
  axes = ("source_layer", "source_head", "layer", "head")
  save(folder / "leak.nc", leakage=(axes, RANDOM.normal(size=(9,) * 4)))
  whole = page([folder])
  assert len(data_of(whole)["pairs"]) == 1 and "leakage: 1" not in whole
  most = len(whole.encode()) + 20_000 - 8_000
  less = page([folder], most_bytes=most)
  assert data_of(less)["pairs"] == [] and "pairs of heads, leakage: 1" in less
  assert data_of(less)["maps"][0]["examples"]
  least = page([folder], most_bytes=1)
  assert data_of(least)["maps"] == [] and "heat maps: 1" in least
  assert "figures: 1" in least


def test_results_of_many_models_leave_room_for_figures_and_tables(folder):
  for i in range(60):
    for name in ("a", "b"):
      long = (("layer", "head"), RANDOM.normal(size=(30, 30)))
      save(folder / f"run{i}" / f"{name}.nc", f"run{i}", other=long)
    save(folder / f"run{i}" / "z.nc", f"run{i}")
  whole = page([folder])
  room = len(whole.encode()) - len(page([folder], most_bytes=1).encode())
  most = len(whole.encode()) + 20_000 - room // 2
  text = page([folder], most_bytes=most)
  assert len(text.encode()) <= most
  assert base64.b64encode(PNG).decode() in text and "<h3>t</h3>" in text
  # What has single examples comes first, and of all models.
  kept = [entry["model"] for entry in data_of(text)["maps"]]
  assert {"m", *(f"run{i}" for i in range(60))} == {*kept[:61]}
  assert "heat maps: " in text
  least = len(page([folder], most_bytes=1).encode())
  assert "provenance of files" in page([folder], most_bytes=least + 30_000)


def test_maps_of_edges_come_last_in_a_scale_of_their_own(folder):
  ends = {n: ("edge", [0, 1]) for n in ("source_layer", "source_head")}
  ends |= {n: ("edge", [1, 2]) for n in ("layer", "head")}
  kl = (("example", "edge"), np.full((4, 2), 1e-6), {"units": "nats"})
  save(folder / "a.nc", kl=kl, **ends)
  effect, *edges = data_of(page([folder]))["maps"]
  assert effect["array"] == "effect" and effect["colour"]["width"]
  assert [e["array"] for e in edges] == ["kl by source", "kl by reader"]
  for entry in edges:
    assert entry["colour"] == {"limit": 1e-6, "signed": False, "width": None}


def test_figures_are_inlined_in_few_colours(tmp_path):
  noise = np.zeros((200, 300, 3), np.uint8)
  noise[..., 0] = np.arange(300) // 2
  noise[:, ::7] = RANDOM.integers(0, 40, (200, 43, 3))
  Image.fromarray(noise).save(tmp_path / "f.png")
  found = re.search('src="data:image/png;base64,([^"]*)', page([tmp_path]))
  small = base64.b64decode(found[1])
  assert len(small) < (tmp_path / "f.png").stat().st_size
  shown = np.asarray(Image.open(io.BytesIO(small)).convert("RGB"), int)
  assert np.abs(shown - noise).mean() < 6


def test_equal_names_are_told_apart(tmp_path):
  for name in ("a", "b"):
    save(tmp_path / name / "effects.nc")
  text = page([tmp_path / "a", tmp_path / "b"])
  names = [entry["quantity"] for entry in data_of(text)["maps"]]
  assert names == ["a/effects: effect", "b/effects: effect"]
  assert "<title>a, b</title>" in text


def test_text_of_a_file_cannot_end_the_script(tmp_path):
  save(tmp_path / "x.nc", model="</script><b>", task="$css")
  text = page([tmp_path])
  assert "<b>" not in text.split('id="data"')[1].split("</script>")[0]
  assert data_of(text)["maps"][0]["model"] == "</script><b>"
  assert "&lt;/script&gt;&lt;b&gt; · $css" in text


def test_a_page_is_written_whole_or_not_at_all(folder, tmp_path):
  out = tmp_path / "page.html"
  out.write_text("before")
  (folder / "bad.nc").write_bytes(b"no netCDF")
  with refusal("bad.nc", "unreadable"):
    write_page([folder], out)
  assert out.read_text() == "before"
  (folder / "bad.nc").unlink()
  write_page([folder], out)
  assert out.read_text("utf-8") == page([folder])
  assert len(out.read_bytes()) < 8e6


@pytest.mark.parametrize(
  ("name", "content", "part"),
  [
    ("f.png", PNG[:-5], "no whole picture"),
    ("f.png", b"", "0 bytes"),
    ("f.png", PNG[:40] + b"x" + PNG[41:], "no whole picture"),
    (commands.NAME, b"{}", "the fields measured and tables"),
    (commands.NAME, b"[", "unreadable"),
    ("t.csv", b"a\n1,2\n", "2 cells"),
  ],
)
def test_damaged_files_are_refused(name, content, part, folder):
  (folder / name).write_bytes(content)
  with refusal(name, part):
    page([folder])


def test_what_is_no_folder_of_results_is_refused(folder, tmp_path):
  with refusal("result", "nowhere", "--out"):
    page([tmp_path / "nowhere"])
  (tmp_path / "empty" / ".hidden").mkdir(parents=True)
  (tmp_path / "empty" / ".hidden" / "a.csv").write_text("a\n1\n")
  with refusal("result", "without a .nc"):
    page([folder, tmp_path / "empty"])
  with refusal("twice"):
    page([folder, folder])


def test_calls_are_noted_once_and_in_order(folder):
  for argv in (["1"], ["2"], ["1"]):
    commands.record(folder, "y.py", argv, tables="t")
  commands.record(folder, "y.py", ["--tables"], tables="t", measured=False)
  found = commands.read(folder / commands.NAME)["measured"]
  assert found == ["python x.py --out 'a b'", "python y.py 1", "python y.py 2"]
