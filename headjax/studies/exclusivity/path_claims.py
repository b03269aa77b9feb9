"""What does the paper claim of clamps and paths? Sections 5.3, 6 and B.

Also the claims about joint effects that the paper asks for and has none of.
"""

from headjax.studies.exclusivity.claims import Claim, column, less
from headjax.studies.exclusivity.published import TASKS, by_task


def paths() -> list[Claim]:
  """Sections 5.3 and B.3: clamps and paths."""
  on = {"chosen_on": "evaluation"}
  lane = by_task(sva="yes, 21% and 0.6%", quote="no, -5.6%", plural="no, -2.3%")
  found = []
  for task in TASKS:
    at = on | {"task": task}
    found += [
      Claim(
        f"{task}: clamping their lane takes from all-common-axis's top heads",
        "5.3",
        "reduction by the own lane less that by others",
        lane[task],
        column("lane-clamps", "reduction - control", "all-common-axis", **at),
      ),
      *(
        Claim(
          f"{task}: same-index heads of {design} are preferred as relays",
          "5.3",
          "reduction by a clamped head, same index less others",
          "no, -0.4 to 24% and -11 to 56%",
          less(
            column("pair-clamps", "reduction", design, same_index=True, **at),
            column("pair-clamps", "reduction", design, same_index=False, **at),
          ),
        )
        for design in ("write-common", "write-common-axis")
      ),
      *(
        Claim(
          f"{task}: effects of {design} pass more through MLPs than in learned",
          "5.3",
          "difference of the reduction by clamped MLPs",
          "yes, 70 to 109% and 13 to 97%",
          column("part-clamps", "reduction", design, clamped="mlps", **at),
          column("part-clamps", "reduction", "learned", clamped="mlps", **at),
        )
        for design in ("write-common", "write-common-axis", "write-rotated")
      ),
      *(
        Claim(
          f"{task}: the direct share is smaller in {design} than in learned",
          "B.3",
          "difference of shares, learned less the other",
          paper if task == "sva" else "-",
          column("path-shares", "direct_share", "learned", **at),
          column("path-shares", "direct_share", design, **at),
        )
        for design, paper in (
          ("write-common-axis", "yes, .48 and .17"),
          ("all-common-axis", "yes, 3.55 and 0.88 logits"),
          ("all-rotated-self", "yes, 3.55 and 0.44 logits"),
        )
      ),
      *(
        Claim(
          f"{task}: same-index write spaces of {design} share the gradient",
          "5.3",
          "cosine of projected task gradients, same less other index",
          paper if task == "sva" else "-",
          column(
            "task-gradients", "same_index - other_index", design,
            task=task, gradient="task",
          ),
        )
        for design, paper in (
          ("write-common", "yes, .45 to .63"),
          ("write-rotated", "no, .04 to .05"),
        )
      ),
      Claim(
        f"{task}: few coordinates carry more in write-common-axis than learned",
        "B.2",
        "share of the best ten after W_O, difference",
        "yes, 45 to 83% and 10 to 13%" if task == "sva" else "yes",
        column(
          "coordinates", "share", "write-common-axis",
          task=task, kind="attn_out",
        ),
        column("coordinates", "share", "learned", task=task, kind="attn_out"),
      ),
      Claim(
        f"{task}: the scalar part of write-common-axis is used",
        "6",
        "drop without it less that of the control",
        "no" if task == "plural" else "yes, in 13 of 15 comparisons",
        column("scalar-part", "drop - control_drop", "write-common-axis",
               task=task),
      ),
    ]  # fmt: skip
  return found


def edges() -> list[Claim]:
  """Appendix B.1."""
  return [
    Claim(
      f"sva: kernels of {design} tell how much edges matter",
      "B.1",
      statistic,
      paper,
      column("edges", name, design, input=letter),
    )
    for design, values in (
      ("learned", ("yes, .30 to .32", "yes, .46 to .47")),
      ("read-common", ("yes, .04", "yes, .12")),
      ("write-common-axis", ("no, -.04 to .07", "undecided, .03 to .10")),
      ("all-common-axis", ("yes by design, .76", "yes by design, .72")),
    )
    for letter, name, statistic, paper in (
      ("all", "spearman", "rank correlation of all edges", values[0]),
      ("Q", "median_within_readers", "median within readers, Q", values[1]),
    )
  ]


def beyond() -> list[Claim]:
  """Joint effects, selectivity and self-repair, which the paper leaves open."""
  found = []
  for design in ("learned", "write-common-axis", "all-common-axis"):
    for task in TASKS:
      found += [
        Claim(
          f"{task}: the top 5 heads of {design} do less together than alone",
          "-",
          "1 less joint effect over summed effects",
          "-",
          column(
            "additivity", "joint_share", design, lambda x: 1 - x, task=task
          ),
        ),
        Claim(
          f"{task}: the top heads of {design} are selective for the task",
          "-",
          "share of the margin, own task less other tasks",
          "-",
          column("selectivity", "selectivity", design, task=task, kind="heads"),
        ),
        Claim(
          f"{task}: the network repairs patches of the top heads of {design}",
          "-",
          "direct less total effect of the top 5 heads",
          "-",
          column("self-repair", "direct - total", design, task=task),
        ),
      ]
  return found
