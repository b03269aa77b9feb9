"""What does the paper claim of losses and concentration? Sections 4, 5.2, 7."""

import dataclasses

import numpy as np

from headjax.studies.exclusivity.claims import Claim, column
from headjax.studies.exclusivity.published import TASKS, by_task


def losses() -> list[Claim]:
  """Section 4, table 2."""
  printed = {
    "write-common-axis": "yes, +0.039",
    "write-common": "yes, +0.044",
    "write-rotated": "yes, +0.050 and +0.056",
    "read-common": "yes, +0.102",
    "all-common-axis": "yes, +0.190",
    "all-rotated": "yes, +0.243",
    "all-rotated-self": "yes, +0.246",
  }
  return [
    Claim(
      f"{design} has the higher validation loss",
      "4",
      "difference to learned, nats a token",
      paper,
      column("performance", "validation_loss", design),
      column("performance", "validation_loss", "learned"),
    )
    for design, paper in printed.items()
  ]


def concentration() -> list[Claim]:
  """Section 5.2, and the matched parameters of section 7."""
  wider = by_task(sva="yes, x1.6", quote="yes, x1.9", plural="yes, x2.4")
  same = by_task(
    sva="yes, 8.1 and 9.1", quote="no, 12.7 and 11.4", plural="no, 3.9 and 3.6"
  )
  indices = by_task(
    sva="yes, 2.0 of 5.0", quote="yes, 3.8 of 5.6", plural="no, 2.3 of 2.7"
  )
  layers = by_task(sva="yes, 4.0 and 1.9", quote="yes, 3.3 and 1.9")
  axis = by_task(sva="undecided", quote="yes, x1.6 to x2.1", plural="undecided")
  top = by_task(
    sva="yes, 61% and 42%", quote="yes, 64% and 39%", plural="no, 77% and 78%"
  )
  blocks = {
    "read-common": "yes for sva and quote",
    "all-common-axis": "yes for sva and plural",
    "all-rotated": "yes",
    "all-rotated-self": "yes",
  }
  found = []
  for task in TASKS:
    found += [
      _fewer_heads("all-common-axis", "all-rotated", task, "5.2", same[task]),
      _more_heads("write-rotated", "learned", task, "5.2", wider[task]),
      _more_heads("write-common-axis", "learned", task, "5.2", axis[task]),
      *(
        _fewer_heads(design, "learned", task, "5.2", paper)
        for design, paper in blocks.items()
      ),
      *(
        _fewer_heads(f"{design}-{width}", "learned", task, "7", "-")
        for design, width in (
          ("read-common", 4127),
          ("all-common-axis", 4511),
          ("all-rotated", 4511),
          ("all-rotated-self", 4511),
        )
      ),
      Claim(
        f"{task}: all-common-axis uses fewer indices than permuted layers",
        "5.2",
        "log of the null's median N_index over N_index",
        indices[task],
        column(
          "concentration",
          "n_index_null / n_index",
          "all-common-axis",
          np.log,
          task=task,
        ),
      ),  # fmt: skip
      Claim(
        f"{task}: all-common-axis uses more layers within an index",
        "5.2",
        "difference of log N_layer to learned",
        layers[task],
        column(
          "concentration", "n_layer", "all-common-axis", np.log, task=task
        ),
        column("concentration", "n_layer", "learned", np.log, task=task),
      ),
      Claim(
        f"{task}: one head of all-rotated-self has the larger share of E",
        "5.3",
        "difference of the largest |e| / E to all-rotated",
        top[task],
        column("concentration", "top_share", "all-rotated-self", task=task),
        column("concentration", "top_share", "all-rotated", task=task),
      ),
    ]
  return found


def _more_heads(a: str, b: str, task: str, section: str, paper: str) -> Claim:
  return Claim(
    f"{task}: {a} spreads its effects over more heads than {b}",
    section,
    "difference of log Neff",
    paper,
    column("concentration", "neff", a, np.log, task=task),
    column("concentration", "neff", b, np.log, task=task),
  )


def _fewer_heads(a: str, b: str, task: str, section: str, paper: str) -> Claim:
  return dataclasses.replace(
    _more_heads(b, a, task, section, paper),
    text=f"{task}: {a} concentrates its effects on fewer heads than {b}",
  )
