"""How does a whole config become the frozen values that training takes?

The one place in training that sees a config: whatever has the sections of
`configs/base.py` as attributes.
"""

import dataclasses
import pathlib
from typing import Any

from headjax.checks import check
from headjax.data.generated import GENERATED, Generated
from headjax.data.keys import KeyedText
from headjax.data.token_files import Corpus, open_corpus
from headjax.models.config import ModelConfig
from headjax.models.from_config import model_config
from headjax.training.recipe import Arithmetic, Optimizer
from headjax.training.schedule import Schedule
from headjax.training.sharding import MeshShape


@dataclasses.dataclass(frozen=True)
class Settings:
  """What a run is.

  Attributes:
    seed: of the first parameters and of the batches.
    model: the architecture.
    optimizer: the recipe of the updates.
    arithmetic: how a step is computed.
    mesh: devices along each axis.
    schedule: when it logs, evaluates and saves.
    record: the whole config in plain values, for the run folder.
  """

  seed: int
  model: ModelConfig
  optimizer: Optimizer
  arithmetic: Arithmetic
  mesh: MeshShape
  schedule: Schedule
  record: dict[str, Any]


def settings(config: Any) -> Settings:
  """The run that a config describes.

  Raises:
    ValueError: a value is not allowed, or two contradict each other.
  """
  steps = config.train.steps
  return Settings(
    seed=config.seed,
    model=model_config(config.model),
    optimizer=_taken(Optimizer, config.optimizer, steps=steps),
    arithmetic=_taken(Arithmetic, config.train),
    mesh=_taken(MeshShape, config.mesh),
    schedule=_taken(Schedule, config.train),
    record=config.to_dict(),
  )


def corpus(config: Any) -> Corpus | Generated:
  """The text that a config names, checked against the model.

  Raises:
    ValueError: there is no such corpus, it is damaged, or it has more ids than
      the model.
  """
  data, d_vocab = config.data, config.model.d_vocab
  if data.corpus not in GENERATED:
    folder = pathlib.Path(data.folder) / data.corpus
    text = open_corpus(folder, sampling=data.sampling, d_vocab=d_vocab)
    if not data.code_share:
      return text
    return KeyedText(text, share=data.code_share, name=f"{text.name} with keys")
  check(
    not data.code_share,
    "data.code_share",
    data.code_share,
    f"0 for corpus {data.corpus}",
    "take the corpus keys, or a folder",
  )
  made = GENERATED[data.corpus]()
  check_vocabulary(made, d_vocab)
  return made


def check_vocabulary(corpus: Corpus | Generated, d_vocab: int) -> None:
  """Refuses a model with fewer ids than a corpus."""
  check(
    corpus.d_vocab <= d_vocab,
    "model.d_vocab",
    d_vocab,
    f"at least {corpus.d_vocab}, the ids of corpus {corpus.name}",
    "set it to that, or use another corpus",
  )


def _taken(cls: type, section: Any, **known: Any) -> Any:
  """An instance whose fields are those of the section, or known."""
  names = [field.name for field in dataclasses.fields(cls)]
  return cls(
    **{
      name: known[name] if name in known else getattr(section, name)
      for name in names
    }
  )
