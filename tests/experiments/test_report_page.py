"""Does the page do in a browser what it should? In a Chromium, if one is here.

The results are those of two tiny models and two files of prompts, measured and
reported by the script itself.
"""

import pathlib
import shutil

import numpy as np
import pytest
import tiny_folder

import headjax
from experiments import head_patching
from headjax import command_line, results

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
QUIET = (
  "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
  "--disable-background-networking", "--disable-component-update",
  "--disable-sync",
)  # fmt: skip
DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def browser():
  found = next(filter(None, map(shutil.which, BROWSERS)), None)
  if found is None:
    pytest.skip(f"no browser: none of {', '.join(BROWSERS)} is on the path")
  api = pytest.importorskip("playwright.sync_api")
  with api.sync_playwright() as playwright:
    chromium = playwright.chromium.launch(executable_path=found, args=QUIET)
    yield chromium
    chromium.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory, browser):
  """What the script left for two models and two tasks."""
  top = tmp_path_factory.mktemp("report")
  models = [tiny_folder.write(top / "one")]
  gain = np.linspace(0.5, 2, 8, dtype=np.float32)
  models.append(tiny_folder.write(top / "two", ln_f__weight=gain))
  for name, lines in (
    ("all", tiny_folder.PAIRS),
    ("few", tiny_folder.PAIRS[:2]),
  ):
    (top / f"{name}.jsonl").write_text("\n".join(lines))
  tasks = [top / "all.jsonl", top / "few.jsonl"]
  argv = ["--model", *models, "--task", *tasks, "--out", top / "out"]
  with pytest.MonkeyPatch.context() as patch:
    patch.setenv("JAX_COMPILATION_CACHE_DIR", str(top / "cache"))
    with pytest.raises(SystemExit) as ended:
      command_line.run(head_patching.main, list(map(str, argv)))
  assert ended.value.code == 0
  return top / "out"


@pytest.fixture
def opened(browser, folder):
  """Opens the page; in the end nothing was asked of a network, nor refused."""
  said, asked, pages = [], [], []

  def go(size=DESKTOP, **options):
    page = browser.new_page(viewport=size, reduced_motion="reduce", **options)
    page.set_default_timeout(20_000)
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto((folder / "report.html").as_uri())
    page.wait_for_selector("body[data-ready]")
    pages.append(page)
    return page

  yield go
  for page in pages:
    page.close()
  assert said == []
  assert set(asked) == {(folder / "report.html").as_uri()}


def effect(folder: pathlib.Path, cell: str):
  return results.load(folder / cell / "effects.nc").effect


def place(page, layer: int, head: int) -> tuple[float, float]:
  """Where a head's cell is in the window."""
  page.locator("#map").scroll_into_view_if_needed()
  return page.evaluate(
    """([layer, head]) => {
      const map = document.getElementById("map");
      const { xaxis: x, yaxis: y } = map._fullLayout;
      const box = map.getBoundingClientRect();
      return [box.left + x._offset + x.l2p(head),
              box.top + y._offset + y.l2p(layer)];
    }""",
    [layer, head],
  )


def written(x: float) -> str:
  """A mean as the page writes it."""
  size = abs(x)
  text = f"{size:.2e}".replace("e-0", "e-") if size < 1e-4 else f"{size:.3g}"
  return ("+" if x > 0 else "\u2212") + text


@pytest.mark.parametrize("size", [DESKTOP, PHONE])
def test_hover_tells_and_click_opens_a_head(opened, folder, size):
  page = opened(size)
  values = effect(folder, "one-all")
  mean = values.mean("example").values
  shown = page.locator(".hoverlayer .hovertext")
  for layer, head in ((1, 0), (0, 1)):
    page.mouse.move(*place(page, layer, head))
    page.wait_for_function(
      "x => document.querySelector('.hoverlayer').textContent.includes(x)",
      arg=f"L{layer}H{head}",
    )
    text = shown.text_content()
    assert written(mean[layer, head]) in text and "4 examples" in text
    page.mouse.click(*place(page, layer, head))
    page.wait_for_function(
      "name => document.getElementById('head-title').textContent === name",
      arg=f"L{layer}H{head}",
    )
    page.wait_for_selector("#head-parts h4:has-text('With the other heads')")
    points = page.evaluate(
      "document.querySelector('#head-parts .plot').data[0].y"
    )
    np.testing.assert_allclose(
      points, np.sort(values.values[:, layer, head]), rtol=1e-3, atol=1e-6
    )
  assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]


def test_a_head_shows_its_attention_and_the_others(opened, folder):
  page = opened()
  page.mouse.click(*place(page, 0, 1))
  page.wait_for_selector("#head-parts h4:has-text('With the other heads')")
  page.wait_for_selector("[aria-label='projection kernel, layer by head']")
  details = results.load(folder / "one-all" / "details.nc")
  found = page.evaluate(
    "[...document.querySelectorAll('#head-parts .plot')].map(p => p.data[0].z)"
  )
  pattern = details.pattern.isel(prompt=0).sel(layer=0, head=1).values
  np.testing.assert_allclose(found[1], pattern[:5, :5], rtol=1e-3, atol=1e-6)
  pk = details.pk.sel(input="Q", source_layer=0, source_head=1).values
  np.testing.assert_allclose(np.array(found[2], float)[1], pk[1], rtol=1e-3)
  page.get_by_label("prompt").select_option("1")
  page.wait_for_function(
    "() => document.querySelectorAll('#head-parts .plot')[1].data[0].z.length"
    " === 3"
  )
  page.get_by_label("this head is").select_option("1")
  page.wait_for_selector("text=No value of this head")
  page.mouse.click(*place(page, 1, 1))
  page.wait_for_selector("[aria-label='projection kernel, layer by head']")
  z = page.locator("#head-parts .plot").nth(2).evaluate("p => p.data[0].z[0]")
  pk = details.pk.sel(input="Q", layer=1, head=1, source_layer=0).values
  np.testing.assert_allclose(z, pk, rtol=1e-3)


def test_the_keyboard_is_enough(opened, folder):
  page = opened()
  mean = effect(folder, "one-all").mean("example").values
  box = page.locator("#map-box")
  page.keyboard.press("Tab")
  for _ in range(20):
    if page.evaluate("document.activeElement.id") == "map-box":
      break
    page.keyboard.press("Tab")
  assert "heat map" in box.get_attribute("aria-roledescription")
  assert "layer by head" in box.get_attribute("aria-label")
  for key, layer, head in (
    ("End", None, 1), ("PageDown", 0, 1), ("ArrowUp", 1, 1),
    ("ArrowUp", 1, 1), ("ArrowLeft", 1, 0),
  ):  # fmt: skip
    page.keyboard.press(key)
    if layer is not None:
      start = f"layer {layer}, head {head}, {written(mean[layer, head])}"
      said = page.locator("#map-said").text_content()
      assert said.startswith(start), key
  page.wait_for_function(
    "() => document.querySelector('.hoverlayer').textContent.includes('L1H0')"
  )
  page.keyboard.press("Enter")
  page.wait_for_function("() => document.activeElement.id === 'head-title'")
  assert page.locator("#head-title").text_content() == "L1H0"
  page.keyboard.press("Escape")
  assert page.evaluate("document.activeElement.id") == "map-box"


@pytest.mark.parametrize("size", [DESKTOP, PHONE])
def test_switches_change_model_and_task(opened, folder, size):
  page = opened(size)
  for label, option, cell in (
    ("task", "few", "one-few"), ("model", "two", "two-few"),
    ("task", "all", "two-all"),
  ):  # fmt: skip
    page.get_by_label(label, exact=True).select_option(label=option)
    page.wait_for_function(
      "f => document.getElementById('map-about').textContent.includes(f)",
      arg=f"{cell}/effects.nc",
    )
    mean = effect(folder, cell).mean("example").values
    page.wait_for_function(
      "x => Math.abs(map.data[0].z[0][0] - x) < 1e-6",
      arg=float(np.arcsinh(mean[0, 0] / 0.2)),
    )
    found = page.evaluate("document.getElementById('map').data[0].z")
    np.testing.assert_allclose(found, np.arcsinh(mean / 0.2), atol=1e-5)


def test_every_line_to_recompute_gives_the_number(opened, folder):
  page = opened()
  page.mouse.click(*place(page, 1, 1))
  page.wait_for_function(
    "() => document.querySelectorAll('#head-parts .again code').length === 3"
  )
  calls = page.locator("#heads .again code").all_text_contents()
  names = {"headjax": headjax, "pathlib": pathlib}
  mean, interval, one, single, pattern, pk = [eval(c, names) for c in calls]
  values = effect(folder, "one-all")
  np.testing.assert_array_equal(mean, values.mean("example"))
  np.testing.assert_allclose(interval.estimate, mean)
  assert float(one) == float(mean[1, 1])
  np.testing.assert_array_equal(single, values[:, 1, 1])
  assert pattern.dims == ("query", "key") and pk.sizes == {
    "layer": 2,
    "head": 2,
  }
  [again] = page.locator("#tables .again code").all_text_contents()
  rows = {(r["model"], r["task"]): r for r in eval(again, names)}
  shown = page.locator("#tables tbody tr")
  assert len(rows) == shown.count() == 4
  for line in shown.all():
    cells = line.locator("td").all_text_contents()
    assert rows[tuple(cells[:2])]["largest head"] == cells[-1].replace(
      "\u2212", "-"
    )


def test_tables_are_sorted_by_their_heads(opened):
  page = opened()
  button = page.locator("#tables th button", has_text="margin")
  for order, sort in (("ascending", sorted), ("descending", None)):
    button.click()
    th = page.locator("#tables th[aria-sort]")
    assert th.get_attribute("aria-sort") == order
    column = th.evaluate("th => th.cellIndex")
    cells = page.locator(f"#tables td:nth-child({column + 1})")
    found = [float(x.replace("\u2212", "-")) for x in cells.all_text_contents()]
    assert found == sorted(found, reverse=sort is None)


def test_tables_and_figures_are_legible_on_a_phone(opened):
  page = opened(PHONE)
  edges = """() => {
    const box = document.querySelector("#tables .wide");
    box.scrollLeft = 200;
    const [first, second] = box.querySelectorAll("tbody td");
    const left = (x) => x.getBoundingClientRect().left;
    return [box.scrollLeft, left(first) - left(box), left(second) - left(box)];
  }"""
  scrolled, first, second = page.evaluate(edges)
  assert scrolled == 200 and first == 0 > second
  image = page.locator("#figures img").first
  assert image.bounding_box()["width"] > 500
  assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_dark_light_and_paper(opened):
  page = opened(color_scheme="dark")
  colour = "getComputedStyle(document.body).backgroundColor"
  dark = page.evaluate(colour)
  page.emulate_media(color_scheme="light")
  assert page.evaluate(colour) == "rgb(255, 255, 255)" != dark
  page.emulate_media(color_scheme="dark", media="print")
  assert page.evaluate(colour) == "rgb(255, 255, 255)"
  assert not page.locator("nav").is_visible()
  assert page.locator("#map").is_visible()
  assert page.locator("#figures img").count() == 4
  assert page.locator("#paper img").first.is_visible()
  said = page.locator("#paper figcaption").all_text_contents()
  for cell in ("one · all", "one · few", "two · all", "two · few"):
    assert sum(text.startswith(cell) for text in said) == 1, cell
  page.emulate_media(media="screen")
  assert not page.locator("#paper").is_visible()
  assert page.pdf(format="A4").startswith(b"%PDF")
