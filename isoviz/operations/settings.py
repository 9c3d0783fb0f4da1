"""Settings of runs to launch, for the command line, programs and agents."""

from __future__ import annotations

from copy import copy

from pydantic import create_model
from pydantic.fields import FieldInfo

from isoviz.config import RunConfig, section_of
from isoviz.operations.operation import STRICT
from isoviz.parameters import extra
from isoviz.runs import planning
from isoviz.tasks.protocol import OwnTask


def _declared(name: str) -> FieldInfo:
    """The setting's field with its option and heading on the command line."""
    field = copy(RunConfig.model_fields[name])
    field.json_schema_extra = {**extra(field), "option": planning.OPTIONS[name], "section": section_of(name)}
    return field


class Settings(
    create_model(  # type: ignore[misc]
        "Settings",
        __config__=STRICT,
        own=(OwnTask | None, None),
        **{name: (RunConfig.model_fields[name].annotation, _declared(name)) for name in planning.OPTIONS},
    )
):
    """What a run is asked to do, but for its model, task, method and seed; those that are not given have defaults."""
