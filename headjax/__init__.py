"""headjax: what does every attention head of a transformer do?

The names below are the public ones; everything else may change.
"""

from headjax.data.pairs import PromptPairs
from headjax.data.tasks import load_task
from headjax.data.token_table import TokenTable, show_tokens
from headjax.interventions.attribution import attribute_heads
from headjax.interventions.heads import patch_heads
from headjax.models.decoder import run
from headjax.models.generate import generate
from headjax.models.load import LoadedModel, load_model
from headjax.models.saving import save_model
from headjax.models.sites import Activations, Edit, Edits, LinearEdit
from headjax.statistics import concentration, lanes

__all__ = [
  "Activations",
  "Edit",
  "Edits",
  "LinearEdit",
  "LoadedModel",
  "PromptPairs",
  "TokenTable",
  "attribute_heads",
  "concentration",
  "generate",
  "lanes",
  "load_model",
  "load_task",
  "patch_heads",
  "run",
  "save_model",
  "show_tokens",
]
