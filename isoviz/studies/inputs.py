"""The user's replacements for a study's models and tasks. No torch here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from isoviz import input_validation
from isoviz.errors import InputError

SETTINGS: Final = MappingProxyType(
    {
        "max_train": "--max-train",
        "max_eval": "--max-eval",
        "epochs": "--epochs",
        "batch_size": "--batch-size",
        "max_length": "--max-length",
        "learning_rate": "--lr",
    }
)
"""Fields of `RunConfig` that the user of a study can set → command-line options."""


@dataclass(frozen=True)
class NamedModel:
    """A model and its name in records. `source`: bundled name, directory or hub id."""

    source: str
    name: str

    @classmethod
    def read(cls, text: str) -> NamedModel:
        """Parse `MODEL` or `NAME=MODEL`. A directory without a name is named by its last part, because records contain no paths."""
        name, mark, model = text.partition("=")
        if not mark or input_validation.folder(text, "model") is not None:
            name, model = "", text
        elif not name.strip() or not model.strip():
            raise InputError.at("model", f"expected MODEL or NAME=MODEL (got '{text}')")
        folder = input_validation.folder(model, "model")
        return cls(model, name or (model if folder is None else folder.resolve().name))

    @property
    def argument(self) -> str:
        """Command-line argument for use on another machine."""
        return self.source if input_validation.folder(self.source, "model") is None else f"{self.name}=DIR"


@dataclass(frozen=True)
class Inputs:
    """Models and tasks of the user's choice; empty for the study's own.

    Attributes:
        models: the encoders.
        tasks: slugs of the catalogue.
        data: slug → folder with the task's files; hub tasks need none.
        seeds: seeds of the runs; at least three for a verdict.
        settings: run settings that replace the study's own; see `SETTINGS`.
    """

    models: tuple[NamedModel, ...] = ()
    tasks: tuple[str, ...] = ()
    data: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    seeds: tuple[int, ...] = ()
    settings: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))

    @classmethod
    def read(
        cls,
        models: Sequence[str] = (),
        tasks: Sequence[str] = (),
        data: Sequence[str] = (),
        seeds: Sequence[int] = (),
        **settings: float | None,
    ) -> Inputs:
        """Parse command-line arguments: `[NAME=]MODEL`, slugs, `TASK=DIR`, numbers (None: not set).

        Raises:
            InputError: an invalid argument.
        """
        folders: dict[str, str] = {}
        for text in data:
            task, mark, folder = text.partition("=")
            if not mark or not task or not folder:
                raise InputError.at("data", f"expected TASK=DIR, as in glue/mrpc=path/to/mrpc (got '{text}')")
            folders[task] = folder
        named_models = tuple(NamedModel.read(text) for text in models)
        run_settings = {name: value for name in SETTINGS if (value := settings.get(name)) is not None}
        return cls(named_models, tuple(tasks), MappingProxyType(folders), tuple(seeds), MappingProxyType(run_settings))

    def given(self) -> dict[str, list[str]]:
        """Field of what the user set → its command-line arguments, with folders written as DIR."""
        arguments = {
            "model": [model.argument for model in self.models],
            "tasks": list(self.tasks),
            "data": [f"{task}=DIR" for task in self.data],
            "seeds": list(map(str, self.seeds)),
            **{name: [str(value)] for name, value in self.settings.items()},
        }
        return {name: values for name, values in arguments.items() if values}

    def words(self) -> list[str]:
        """Command-line arguments of these inputs."""
        return [word for name, values in self.given().items() for word in (SETTINGS.get(name, f"--{name}"), *values)]


OWN: Final = Inputs()
"""No user inputs: the study's own models and tasks."""
