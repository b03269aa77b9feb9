"""How do the files of a public architecture become a model, and back?"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from headjax.models import layouts
from headjax.models.config import ModelConfig
from headjax.models.config_fields import Fields
from headjax.models.family_parts import Entry, Part
from headjax.models.layouts import Layout


@dataclasses.dataclass(frozen=True)
class Family:
  """A public architecture.

  Attributes:
    architecture: the name of its class in transformers.
    model_type: its name in config.json.
    entries: single values; the number of layers first.
    parts: values that belong together.
    fixed: what all its models have, as fields of a ModelConfig.
    refused: fields of config.json that have to be absent or of this value.
    layout: the tensors of a model.
    prefix: of the tensors' names, which some files leave out.
    aliases: other names of tensors -> those in the layout.
  """

  architecture: str
  model_type: str
  entries: tuple[Entry, ...]
  parts: tuple[Part, ...]
  fixed: Mapping[str, Any]
  layout: Callable[[ModelConfig], Layout]
  refused: Mapping[str, Any] = dataclasses.field(default_factory=dict)
  prefix: str = ""
  aliases: Mapping[str, str] = dataclasses.field(default_factory=dict)

  def read(self, fields: Fields, n_tensors: int) -> ModelConfig:
    """The architecture that a config.json describes.

    Args:
      fields: of the file.
      n_tensors: in the weights; more layers or experts than that are refused
        before anything is as large as they are many.
    """
    fields.require("quantization_config", None)
    for name, value in self.refused.items():
      fields.require(name, value)
    found = {entry.field: entry.read(fields) for entry in self.entries}
    many = found["n_layers"] * max(1, found.get("n_experts", 0))
    layouts.check_layers(many, n_tensors, fields.source)
    for part in self.parts:
      found |= part.read(fields, found)
    return ModelConfig(**found, **self.fixed)

  def write(self, config: ModelConfig) -> dict[str, Any]:
    """The fields of a config.json that come nearest to a ModelConfig."""
    written = {"architectures": [self.architecture]}
    written["model_type"] = self.model_type
    for entry in self.entries:
      written[entry.name] = entry.write(config)
    for part in self.parts:
      written |= part.write(config)
    return written

  def differences(self, config: ModelConfig) -> dict[str, str]:
    """What a config.json of this family cannot say, by field."""
    try:
      again = self.read(Fields("config.json", self.write(config)), 2**62)
    except ValueError as error:
      return {"": str(error)}
    return {
      field: f"{field} = {ours!r}, there {getattr(again, field)!r}"
      for field, ours in vars(config).items()
      if ours != getattr(again, field)
    }
