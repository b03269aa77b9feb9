"""What does the paper claim of leakage and self-alignment? 5.1 and 5.4."""

from headjax.studies.exclusivity.claims import Claim, column, less
from headjax.studies.exclusivity.published import TASKS

READERS = ("learned", "write-common-axis", "write-common", "write-rotated")


def leakage() -> list[Claim]:
  """Section 5.1."""
  found = []
  for design, ratios, ranks in (
    ("learned", "yes, 1.09 to 1.13", "yes, .73 to .81"),
    ("write-common-axis", "yes, 1.02 to 1.05", "yes, .46 to .72"),
  ):
    for task in TASKS:
      where = {"design": design, "task": task}
      top = where | {"chosen_on": "evaluation"}
      found += [
        Claim(
          f"{task}: patches of {design} leak into queries above the isotropic",
          "5.1",
          "median of L / rho, Q",
          ratios,
          column("leakage", "median_ratio", input="Q", **where),
          bound=1.0,
        ),
        Claim(
          f"{task}: leakage of {design} follows the isotropic expectation",
          "5.1",
          "rank correlation of L and rho, Q",
          ranks,
          column("leakage", "spearman", input="Q", **where),
        ),
        Claim(
          f"{task}: top heads of {design} leak into each other's queries most",
          "5.1",
          "percentile among all later readers, Q",
          "yes, 97.6",
          column("leakage-pairs", "percentile", input="Q", **top),
          bound=50.0,
        ),
        *(
          Claim(
            f"{task}: top heads of {design} leak more into Q than into {other}",
            "5.1",
            f"L / rho of Q less that of {other}",
            f"yes, 1.77 and {printed}",
            less(
              column("leakage-pairs", "ratio", input="Q", **top),
              column("leakage-pairs", "ratio", input=other, **top),
            ),
          )
          for other, printed in (("K", "1.19"), ("V", "1.26"))
        ),
        Claim(
          f"{task}: top heads of {design} move attention by queries",
          "5.1",
          "total variation, query only less keys only",
          "yes, .029 and .014",
          column("attention-pairs", "query - keys", **top),
        ),
        Claim(
          f"{task}: leakage into Q of {design} foretells where attention turns",
          "5.1",
          "rank correlation over later heads",
          "yes, .41",
          column("leakage-attention", "spearman", **top),
        ),
        Claim(
          f"{task}: direct responses of {design} are near the total",
          "5.1",
          "cosine in Q, top pairs less the median of all",
          "yes, .86 and .50 to .53",
          less(
            column("response-pairs", "cosine", input="Q", **top),
            column("responses", "median_cosine", input="Q", **where),
          ),
        ),
      ]
  return found


def alignment() -> list[Claim]:
  """Section 5.4."""
  found = []
  for design in READERS:
    found += [
      Claim(
        f"values of {design} read their own writes best",
        "5.4",
        "share of heads of layers from 1, less chance",
        "yes, 53 to 87%",
        column("alignment", "own_best - chance", design),
      ),
      Claim(
        f"gradients of {design} prefer the own block",
        "5.4",
        "share of heads with the largest own trace, less chance",
        "yes at step 256, 77 to 78%; no at step 0",
        column("alignment", "own_gradient - chance", design),
      ),
    ]
  for design in READERS[1:]:
    found += [
      Claim(
        f"learned writes align more than those of {design}",
        "5.4",
        "difference of rho_self",
        "yes, .18 to .19 and .11 to .12",
        column("alignment", "rho_self", "learned"),
        column("alignment", "rho_self", design),
      ),
      Claim(
        f"learned OV maps repeat themselves more than those of {design}",
        "5.4",
        "difference of the median scaled idempotence",
        "yes, .49 to .52 and .12 to .22",
        column("alignment", "idempotence", "learned"),
        column("alignment", "idempotence", design),
      ),
    ]
  return found
