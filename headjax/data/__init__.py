"""Clean and reference prompts: built-in tasks, and files of your own."""

from headjax.data.jsonl import from_jsonl
from headjax.data.pairs import PromptPairs, pad_right
from headjax.data.tasks import TASKS, load_task
from headjax.data.templates import SPLITS, Pool, Template

__all__ = [
  "SPLITS",
  "TASKS",
  "Pool",
  "PromptPairs",
  "Template",
  "from_jsonl",
  "load_task",
  "pad_right",
]
