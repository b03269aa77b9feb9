"""Which model, prompts and machine are behind a page?"""

import json
from collections.abc import Sequence
from html import escape
from typing import Any

from headjax.reports.html.budget import Budget
from headjax.reports.html.source import Source


def html(sources: Sequence[Source], budget: Budget) -> str:
  """What is the same for all files once, then what differs, file by file."""
  if not sources:
    return "<p>There are tables and figures here, and no measurements.</p>"
  same = _shared(sources)
  title = "Of all measurements" if len(sources) > 1 else sources[0].name
  parts = [f"<h3>{escape(title)}</h3>", _table(same)]
  if len(sources) > 1:
    parts.append("<h3>File by file</h3>")
    parts.append('<p class="paper same">Folded files are not printed.</p>')
    owns = (
      budget.take("provenance of files", lambda s=s: _own(s, same))
      for s in sources
    )
    parts += [own for own in owns if own]
  return "".join(parts)


def _shared(sources: Sequence[Source]) -> dict[str, Any]:
  first = sources[0].attrs
  return {
    name: value
    for name, value in first.items()
    if all(_same(other.attrs.get(name), value) for other in sources)
  }


def _same(a: Any, b: Any) -> bool:
  return a == b or (a != a and b != b)


def _own(source: Source, same: dict[str, Any]) -> str:
  own = {k: v for k, v in source.attrs.items() if k not in same}
  return (
    f"<details><summary>{escape(source.name)}</summary>{_table(own)}</details>"
  )


def _table(attrs: dict[str, Any]) -> str:
  lines = "".join(
    f'<tr><th scope="row">{escape(str(name).replace("_", " "))}</th>'
    f"<td>{_value(value)}</td></tr>"
    for name, value in attrs.items()
    if value != ""
  )
  return f'<div class="wide"><table class="listed">{lines}</table></div>'


def _value(value: Any) -> str:
  """A value as text; an object of JSON as its fields."""
  text = f"{value:.6g}" if isinstance(value, float) else str(value)
  if not text.startswith("{"):
    return escape(text)
  try:
    fields = json.loads(text)
  except json.JSONDecodeError:
    return escape(text)
  lines = ", ".join(f"{k} {json.dumps(v)}" for k, v in fields.items())
  return f'<span class="long">{escape(lines)}</span>'
