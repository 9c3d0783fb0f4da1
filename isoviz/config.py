"""What one run is: a frozen, versioned, JSON-serialisable configuration."""

from __future__ import annotations

import json
from typing import Any, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from isoviz.errors import input_error
from isoviz.input_validation import MOST_WHOLE
from isoviz.models.low_rank import LowRank
from isoviz.parameters import ParamValue
from isoviz.tasks.protocol import OwnTask

NO_TRACKER: Final = "none"

SECTIONS: Final[dict[str, tuple[str, ...]]] = {
    "Optimisation": ("schedule", "warmup_ratio", "weight_decay", "grad_accum", "early_stopping", "batching"),
    "Input and output": ("max_length", "prefix", "doc_stride", "num_beams", "allow_unknown"),
    "Embeddings": ("loss", "temperature", "widths", "pooling"),
    "Evaluation and checkpoints": ("select", "max_eval", "probe_size", "checkpoint_minutes", "report_to"),
    "Hardware": ("precision", "threads", "processes", "micro_batch", "accelerate_config"),
    "LoRA": ("lora_rank", "lora_alpha", "lora_dropout", "lora_targets", "dtype"),
}
"""Headings under which the form and the command line list settings; all others come first."""
_LATER: Final = (
    *("processes", "accelerate_config", "pooling", "dtype", "loss", "temperature", "micro_batch", "widths"),
)


def section_of(name: str) -> str:
    """The heading of a setting; empty for those that come first."""
    return next((heading for heading, names in SECTIONS.items() if name in names), "")


class RunConfig(BaseModel):
    """One fine-tuning run, complete: the same configuration on the same machine kind gives the same numbers.

    The fields carry their help, bounds and labels; the form, the command line and the docs are drawn from them.
    Method parameters are in `params`, already validated and completed by the method's own `Params`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    version: Literal[1] = 1
    model: str = Field("demo/tiny-bert", title="Model", description="Bundled model, local directory or hub id.")
    task: str = Field("demo/acceptability", title="Task", description="What the model is fine-tuned for.")
    data: str | None = Field(
        None,
        title="Data folder",
        description="Folder with train and validation as Parquet, CSV, TSV, JSON lines or Arrow.",
    )
    own: OwnTask | None = Field(None, title="Own data", description="Columns of the task 'own'.")
    direction: str | None = Field(
        None,
        pattern=r"^[a-z]{2,3}-[a-z]{2,3}$",
        title="Direction",
        description="Direction of a translation, FROM-TO, such as en-ro.",
    )
    method: str = Field(
        "baseline", title="Method", description="Isotropy method; baseline is plain fine-tuning; isobn+istar is both."
    )
    params: dict[str, ParamValue] = Field(default_factory=dict, title="Method parameters")
    seed: int = Field(0, ge=0, le=2**31 - 1, title="Seed", description="Fixes data order, new weights and dropout.")
    epochs: int = Field(3, ge=1, le=1000, title="Epochs", description="Passes over the training rows.")
    learning_rate: float = Field(
        5e-5,
        gt=0,
        le=1,
        title="Learning rate",
        description="Peak of the schedule. About 5e-5 for a real encoder, 6e-4 for demo/tiny-bert.",
        json_schema_extra={"shown_default": "depends on the model"},
    )
    batch_size: int = Field(
        32,
        ge=1,
        le=4096,
        title="Batch size",
        description="Rows per forward pass; times grad-accum, the rows per optimiser step.",
    )
    max_train: int | None = Field(
        None,
        ge=2,
        le=MOST_WHOLE,
        title="Training rows",
        description="Use at most this many, chosen at random (the same for every run).",
    )
    schedule: Literal["constant", "linear", "polynomial"] = Field(
        "linear", title="Schedule", description="How the learning rate falls after the warm-up."
    )
    warmup_ratio: float = Field(0.06, ge=0, lt=1, title="Warm-up", description="Share of the steps that warm up.")
    weight_decay: float = Field(0.01, ge=0, le=1, title="Weight decay", description="AdamW's, not on biases and norms.")
    grad_accum: int = Field(1, ge=1, le=1024, title="Accumulation", description="Batches per optimiser step.")
    micro_batch: int | None = Field(
        None,
        ge=1,
        le=4096,
        title="Rows at once",
        description="Pass at most this many rows of a batch through the network at once, to save memory. The loss and its gradients stay "
        "those of the whole batch. Empty: all, and fewer where memory is short.",
    )
    max_length: int = Field(
        128, ge=4, le=8192, title="Longest input", description="Longest input, in tokens; longer texts are truncated."
    )
    prefix: str | None = Field(
        None,
        min_length=1,
        max_length=200,
        title="Task prefix",
        description="Prefix of the text and, after |, of the second text. Empty: the model's own prefix for the task (T5 has "
        "some). none: no prefix.",
    )
    doc_stride: int = Field(
        64,
        ge=0,
        le=8192,
        title="Window overlap",
        description="Tokens shared by neighbouring windows of a long context; question answering only.",
    )
    early_stopping: str | None = Field(
        None,
        pattern=r"^[\w/-]+:\d+$",
        title="Early stopping",
        description="METRIC:PATIENCE, in epochs without improvement; METRIC may be 'primary', the task's primary metric.",
    )
    select: Literal["last", "best"] = Field(
        "last",
        title="Reported and kept epoch",
        description="The epoch to report, whose weights are kept: the last, or the best by the primary metric.",
    )
    num_beams: int = Field(1, ge=1, le=64, title="Beams", description="For generation tasks only.")
    batching: Literal["bucketed", "shuffled"] = Field(
        "bucketed",
        title="Batching",
        description="bucketed: rows of similar length together (less padding); shuffled: as in the papers.",
    )
    max_eval: int | None = Field(
        None, ge=2, le=MOST_WHOLE, title="Validation rows", description="Use at most this many (the first ones)."
    )
    probe_size: int = Field(
        2000, ge=4, le=50_000, title="Probe rows", description="Validation rows on which isotropy is measured."
    )
    allow_random: bool = Field(
        False,
        title="Use random weights",
        description="Continue if the checkpoint does not match the model. Missing encoder weights are random, and every number "
        "is marked.",
    )
    allow_unknown: bool = Field(
        False,
        title="Allow unknown words",
        description="Train even if the model's tokenizer does not know most words of the training rows.",
    )
    checkpoint_minutes: float = Field(
        10.0,
        ge=0,
        le=1440,
        title="Checkpoint every",
        description="Minutes between checkpoints inside an epoch. 0: only after each epoch. Does not change any result.",
    )
    precision: Literal["auto", "no", "bf16", "fp16"] = Field(
        "auto", title="Precision", description="auto: bf16 on GPUs that have it, else float32 ('no')."
    )
    threads: int = Field(
        0, ge=0, le=1024, title="CPU threads", description="0: all cores of the slot, resolved at creation."
    )

    report_to: Literal[
        "none", "tensorboard", "wandb", "mlflow", "trackio", "aim", "clearml", "comet_ml", "dvclive", "swanlab"
    ] = Field(
        NO_TRACKER,
        title="Report to",
        description="An experiment tracker to log to as well; its package must be installed. Does not change any result.",
    )
    processes: int = Field(
        1,
        ge=1,
        le=1024,
        title="Processes",
        description="Train with this many processes, one per GPU. They share each batch, so the batch size stays the same.",
    )
    accelerate_config: str | None = Field(
        None,
        title="Accelerate configuration",
        description="File written by `accelerate config`, for FSDP or several machines.",
    )

    lora_rank: int = Field(
        0,
        ge=0,
        le=1024,
        title="LoRA rank",
        description="Train matrices of this rank beside the frozen weights, with the package peft. 0: train all weights. LoRA "
        "usually needs a higher learning rate.",
    )
    lora_alpha: float = Field(
        16.0, gt=0, le=4096, title="LoRA alpha", description="The update is scaled by alpha over rank."
    )
    lora_dropout: float = Field(
        0.0, ge=0, lt=1, title="LoRA dropout", description="Dropout on the input of the LoRA matrices, in training."
    )
    lora_targets: str | None = Field(
        None,
        pattern=r"^[\w.-]+(\s*,\s*[\w.-]+)*$",
        max_length=200,
        title="LoRA layers",
        description="Names of linear layers, separated by commas, such as query, value. Empty: peft's choice for the model's family.",
    )

    dtype: Literal["auto", "float32", "bfloat16", "float16"] = Field(
        "auto",
        title="Frozen weights",
        description="Number format of the weights that LoRA freezes; what trains stays float32. auto: as stored on a GPU, float32 on "
        "the CPU.",
    )

    loss: Literal["auto", "cosent", "angle", "cosine", "infonce"] = Field(
        "auto",
        title="Loss",
        description="Embedding tasks only. cosent (auto), angle and cosine: pairs with scores. infonce: texts that belong together, "
        "against all others of the batch.",
    )
    temperature: float = Field(
        0.05,
        gt=0,
        le=10,
        title="Temperature",
        description="Embedding tasks only: cosines are divided by it; 0.05 is a scale of 20. Accumulation adds no negatives.",
    )

    widths: str | None = Field(
        None,
        pattern=r"^\d{1,6}(\s*,\s*\d{1,6})*$",
        title="Matryoshka widths",
        description="Embedding tasks only: numbers of first dimensions that also serve as vectors, such as 128, 64. The loss is the "
        "mean over these and the full width; task and isotropy are measured at each.",
    )

    pooling: Literal["auto", "last", "mean", "cls"] = Field(
        "auto",
        title="Pooling",
        description="The vector of a row, for decoders and embedding tasks. auto: as the model's authors say; else the last token of a "
        "decoder, the mean of others.",
    )

    @model_validator(mode="before")
    @classmethod
    def _without_former_fields(cls, values: Any) -> Any:
        """Runs that were stored while decoders could leave out attention sinks name that option, nearly all to say no."""
        if isinstance(values, dict) and values.get("without_sinks") is False:
            return {name: value for name, value in values.items() if name != "without_sinks"}
        return values

    @field_validator("prefix")
    @classmethod
    def _two_parts(cls, value: str | None) -> str | None:
        if value is not None and (value.count("|") > 1 or not value.strip(" |")):
            raise ValueError("expected a prefix, with at most one | between the first and the second text's")
        return value

    @field_validator("lora_targets")
    @classmethod
    def _in_one_order(cls, value: str | None) -> str | None:
        return None if value is None else ", ".join(sorted({name.strip() for name in value.split(",")}))

    @field_validator("widths")
    @classmethod
    def _largest_first(cls, value: str | None) -> str | None:
        return None if value is None else ", ".join(map(str, sorted(set(map(int, value.split(","))), reverse=True)))

    @property
    def prefixes(self) -> tuple[int, ...]:
        """The widths of `widths` as numbers."""
        return tuple(map(int, self.widths.split(","))) if self.widths else ()

    @property
    def low_rank(self) -> LowRank | None:
        """How LoRA adapts the model; None where all weights train."""
        if not self.lora_rank:
            return None
        targets = self.lora_targets.split(", ") if self.lora_targets else ()
        return LowRank(self.lora_rank, self.lora_alpha, self.lora_dropout, tuple(targets))

    def setup_key(self) -> str:
        """Equal for runs that differ in nothing but seed and what changes no number: threads, minutes between checkpoints, tracker.

        Several processes draw other dropout masks than one does.
        """
        fields = self.model_dump(
            mode="json", exclude={"seed", "threads", "checkpoint_minutes", "report_to", "allow_unknown"}
        )
        # stores hold keys from before there were these fields
        for name in _LATER:
            if fields[name] == RunConfig.model_fields[name].default:
                del fields[name]
        if fields["own"] and fields["own"]["third"] is None:
            del fields["own"]["third"]
        return json.dumps(fields, sort_keys=True)

    @property
    def identity(self) -> tuple[str, int]:
        """Equal for runs that give the same numbers on one kind of machine."""
        return self.setup_key(), self.seed

    @classmethod
    def checked(cls, **values: Any) -> Self:
        """Build a configuration, turning the first violation into an `InputError` that names its field and bounds."""
        try:
            return cls(**values)
        except ValidationError as error:
            raise input_error(error) from None
