"""`Watch`: an object for plain loops that is also a callback of transformers' trainers and makes one for Lightning."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Collection, Mapping
from difflib import get_close_matches
from importlib import import_module
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from isoviz.errors import InputError, listed
from isoviz.metrics.cloud import is_tensor
from isoviz.watch.collapse import KINDS, Alarm, CollapseTest
from isoviz.watch.measures import MEASURES, measures_of

_CLASSIFIERS: Final = ("ForSequenceClassification", "ForTokenClassification", "ForMultipleChoice")


_log = logging.getLogger("isoviz.watch")


class WatchWarning(UserWarning):
    """What the watch cannot see, or a collapse."""


class Watch:
    """Measures a training's vectors every `measure_every` steps, and decides after each step whether they collapsed.

    As a callback of transformers' Trainer and SentenceTransformerTrainer it reads the vectors by a forward hook: a
    SentenceTransformer's sentence embeddings, otherwise the encoder's last layer pooled over each text, otherwise `layer`. It
    takes the first forward pass with gradients of each step, so one vector per text. The measures describe the last `window`
    vectors, which come from slightly different states of the model.

    Args:
        layer: name of a module (`model.named_modules()`); None finds the encoder itself.
        pooling: of token vectors (B, L, d): `mean` over unpadded tokens, `cls` (first token) or `last` (last unpadded token).
        on_collapse: `log`, `warn`, `stop` (warns, then ends the training after this step), or a function of the `Alarm`.
        false_alarm_rate, alike, few: see `CollapseTest`.
        kinds: which collapses to decide; None: all, but only `alike` for a transformers classifier, whose vectors come to differ
            in one direction less than it has labels (Papyan, Han & Donoho 2020).
        warmup: steps before the first decision.
        measure_every: steps between measures.
        window: vectors that the measures describe.
        seed: of the pairs.

    Attributes:
        alarm: the collapse, once found; the tests end with it.
        latest: the last measures as `isotropy/NAME`, ready to log; `missing`: reasons for those left out, which are all if no
            batch since the measures before had a usable vector.
        should_stop: whether a collapse asks to end the training.

    Raises:
        InputError: (a ValueError) a value outside its range, named in `field`.
    """

    def __init__(
        self,
        *,
        layer: str | None = None,
        pooling: Literal["mean", "cls", "last"] = "mean",
        on_collapse: Literal["log", "warn", "stop"] | Callable[[Alarm], object] = "warn",
        false_alarm_rate: float = 0.01,
        alike: float = 0.98,
        few: float = 4.0,
        kinds: Collection[str] | None = None,
        warmup: int = 100,
        measure_every: int = 100,
        window: int = 1000,
        seed: int = 0,
    ) -> None:
        if not callable(on_collapse) and on_collapse not in ("log", "warn", "stop"):
            raise InputError(
                f"on_collapse must be log, warn, stop or a function, got {on_collapse!r}", field="on_collapse"
            )
        if pooling not in ("mean", "cls", "last"):
            raise InputError(f"pooling must be mean, cls or last, got {pooling!r}", field="pooling")
        for field, value, least in (("warmup", warmup, 0), ("measure_every", measure_every, 1), ("window", window, 2)):
            if not isinstance(value, int) or value < least:
                raise InputError(f"{field} must be a whole number of at least {least}, got {value!r}", field=field)
        self.layer, self.pooling, self.on_collapse = layer, pooling, on_collapse
        self.warmup, self.measure_every, self.window = warmup, measure_every, window
        self._kinds = kinds
        self._settings: dict[str, Any] = {"rate": false_alarm_rate, "alike": alike, "few": few, "seed": seed}
        self._test = CollapseTest(kinds=KINDS if kinds is None else kinds, **self._settings)
        self._hooks: list[Any] = []
        self.restart()

    def restart(self) -> None:
        """Forget vectors, evidence and alarm, as before a training."""
        self.alarm: Alarm | None = None
        self.latest: dict[str, float] = {}
        self.missing: dict[str, str] = {}
        self.steps = 0
        self._rows: list[NDArray[np.float32]] = []
        self._unmeasured = 0
        self._test = CollapseTest(kinds=tuple(self._test.tests), **self._settings)  # of the attached model
        self._fresh: Any = None
        self._mask: Any = None
        self._said: set[str] = set()
        self._unlogged: dict[str, float] = {}

    @property
    def should_stop(self) -> bool:
        return self.alarm is not None and self.on_collapse == "stop"

    def step(self, vectors: Any = None, *, mask: Any = None, at: int | None = None) -> Alarm | None:
        """After an optimiser step: look at its vectors, numpy or torch; the collapse, at the step that finds it.

        Args:
            vectors: (B, d), or token vectors (B, L, d); None takes those of the hook (`attach`).
            mask: (B, L), 1 for tokens, 0 for padding.
            at: number of the optimiser step; counted if None.

        Raises:
            InputError: (a ValueError) another shape, a width that changed, or no vectors and no hook.
        """
        if vectors is None and not self._hooks:
            raise InputError("step needs vectors (B, d), or attach(model) before the first step", field="vectors")
        taken = self._fresh if vectors is None else _pooled(vectors, mask, self.pooling)
        self._fresh = None
        self.steps = self.steps + 1 if at is None else at
        if taken is None:
            self._say(f"no vectors at step {self.steps}: the hook did not fire; name another layer=")
        rows = np.empty((0, 0), dtype=np.float32) if taken is None else as_rows(taken)
        finite = np.isfinite(rows).all(axis=1)
        if not finite.all():
            self._say(
                f"left out {int((~finite).sum())} of {len(rows)} vectors with nan or infinite entries at step {self.steps}"
            )
            rows = rows[finite]
        zeros = int((~rows.any(axis=1)).sum())
        if zeros:
            self._say(f"{zeros} of {len(rows)} vectors are zero at step {self.steps}: they have no direction")
        if len(rows) < 4 and taken is not None:
            self._say(f"{len(rows)} usable vectors at step {self.steps}: deciding needs 4 per batch (2 for alike)")
        if self._rows and len(rows) and rows.shape[1] != self._rows[0].shape[1]:
            raise InputError(f"vectors changed width from {self._rows[0].shape[1]} to {rows.shape[1]}", field="vectors")
        self._remember(rows)
        alarm = None
        if self.steps > self.warmup and self.alarm is None and len(rows):
            alarm = self._test.look(rows, self.steps)
        if self.steps % self.measure_every == 0 or alarm:
            self._measure()
        if alarm:
            self.alarm = alarm
            self._act(alarm)
        return alarm

    def _say(self, sentence: str) -> None:
        """Warn once for each kind of sentence."""
        kind = "".join(letter for letter in sentence if not letter.isdigit())
        if kind not in self._said:
            self._said.add(kind)
            warnings.warn(f"isoviz.Watch: {sentence}", WatchWarning, stacklevel=3)

    def _remember(self, rows: NDArray[np.float32]) -> None:
        if not len(rows):
            return
        self._unmeasured += len(rows)
        self._rows.append(rows[-self.window :])
        while sum(map(len, self._rows)) - len(self._rows[0]) >= self.window:
            del self._rows[0]

    def _measure(self) -> None:
        if not self._unmeasured:
            self._rows = []
        self._unmeasured = 0
        values: dict[str, float] = {"n": 0.0}
        self.missing = dict.fromkeys(MEASURES, "no usable vectors since the measures before")
        if self._rows:
            vectors = np.concatenate(self._rows)[-self.window :]
            values, self.missing = measures_of(vectors)
            values["n"] = float(len(vectors))
        self.latest = {f"isotropy/{name}": value for name, value in values.items()}
        self._unlogged = dict(self.latest)

    def _act(self, alarm: Alarm) -> None:
        self._unlogged["isotropy/collapsed"] = 1.0
        if callable(self.on_collapse):
            self.on_collapse(alarm)
        elif self.on_collapse == "log":
            _log.warning("%s", alarm)
        else:
            warnings.warn(f"isoviz.Watch: {alarm}", WatchWarning, stacklevel=4)

    # Models

    def attach(self, model: Any) -> None:
        """Read the vectors of a torch model by a forward hook, until `detach`.

        Raises:
            InputError: (a ValueError) no module has the name `layer`, or no encoder was found and `layer` is None.
        """
        self.detach()
        module = self._module(model)
        classifies = any(type(each).__name__.endswith(_CLASSIFIERS) for each in model.modules())
        self._test = CollapseTest(kinds=self._kinds or (("alike",) if classifies else KINDS), **self._settings)
        self._hooks = [
            model.register_forward_pre_hook(self._note_mask, with_kwargs=True),
            module.register_forward_hook(self._take, with_kwargs=True),
        ]

    def detach(self) -> None:
        """Remove the hooks."""
        for hook in self._hooks:
            hook.remove()
        self._hooks = []

    def _module(self, model: Any) -> Any:
        modules = dict(model.named_modules())
        if self.layer is not None:
            if self.layer in modules:
                return modules[self.layer]
            near = get_close_matches(self.layer, modules, n=5, cutoff=0.3) or list(modules)[1:]
            raise InputError(f"layer '{self.layer}' is not in this model; for example: {listed(near)}", field="layer")
        for module in modules.values():  # from the outside in
            kinds = [base.__name__ for base in type(module).__mro__]
            if "SentenceTransformer" in kinds:
                return module
            if "PreTrainedModel" in kinds:
                body = module.base_model
                return body.get_encoder() if getattr(body.config, "is_encoder_decoder", False) else body
        raise InputError(f"found no encoder in {type(model).__name__}: name the module with layer=", field="layer")

    def _note_mask(self, module: Any, args: tuple[Any, ...], given: dict[str, Any]) -> None:
        self._mask = _mask_of(args, given)

    def _take(self, module: Any, args: tuple[Any, ...], given: dict[str, Any], output: Any) -> None:
        if self._fresh is not None or not import_module("torch").is_grad_enabled():  # evaluation
            return
        mask = _mask_of(args, given)
        self._fresh = _pooled(_vectors_in(output), self._mask if mask is None else mask, self.pooling)

    # transformers.Trainer and SentenceTransformerTrainer

    def watch(self, trainer: Any) -> Watch:
        """Add this callback before the trainer's loggers, so that TensorBoard, wandb and others receive the measures, too.
        `trainer.add_callback` adds it after them, and the measures then reach `log_history` only."""
        trainer.callback_handler.callbacks.insert(0, self)
        return self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("on_") and name != "on_collapse":  # a trainer's events that do not concern the watch
            return lambda *args, **given: None
        raise AttributeError(f"'Watch' object has no attribute '{name}'")

    def on_train_begin(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
        if self.on_collapse == "stop" and getattr(args, "world_size", 1) > 1:
            raise InputError("on_collapse='stop' works in one process; use warn or a function", field="on_collapse")
        self.detach()
        self.restart()
        self.attach(model)

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> Any:
        if self.step(at=state.global_step):
            control.should_log = True
        control.should_training_stop = control.should_training_stop or self.should_stop
        return control

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **_: Any) -> None:
        if logs is not None:
            logs.update(self._unlogged)
        if state.log_history:
            state.log_history[-1].update(self._unlogged)
        self._unlogged = {}

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.detach()

    # Lightning

    def lightning(self) -> Any:
        """This watch as a Lightning callback: `Trainer(callbacks=[watch.lightning()])`."""
        try:
            base = import_module("lightning.pytorch").Callback
        except ImportError:
            base = import_module("pytorch_lightning").Callback  # the same library under its earlier name

        def begin(_: Any, trainer: Any, module: Any) -> None:
            self.on_train_begin(trainer, None, None, model=module)

        def after_batch(_: Any, trainer: Any, module: Any, *__: Any) -> None:
            if trainer.global_step > self.steps:  # not while gradients accumulate
                self.step(at=trainer.global_step)
            if self._unlogged:
                module.log_dict(self._unlogged, logger=False)  # loggers would get those of some steps only
                for logger in trainer.loggers:
                    logger.log_metrics(self._unlogged, step=trainer.global_step)
                self._unlogged = {}
            trainer.should_stop = trainer.should_stop or self.should_stop

        def end(_: Any, trainer: Any, module: Any) -> None:
            self.on_train_end(trainer, None, None)

        return type(
            "Watching", (base,), {"on_fit_start": begin, "on_train_batch_end": after_batch, "on_fit_end": end}
        )()


# One vector per text, from what the modules of a model return


def _mask_of(args: tuple[Any, ...], given: Mapping[str, Any]) -> Any:
    """The attention mask in a forward call's arguments, if any."""
    features = args[0] if args and isinstance(args[0], Mapping) else {}
    return given.get("attention_mask", features.get("attention_mask"))


def _vectors_in(output: Any) -> Any:
    """Of what a module returns: the sentence embeddings, the last layer, or the first tensor."""
    if isinstance(output, Mapping) or hasattr(output, "last_hidden_state"):
        for name in ("sentence_embedding", "last_hidden_state"):
            value = output.get(name) if isinstance(output, Mapping) else getattr(output, name, None)
            if value is not None:
                return value
    return output[0] if isinstance(output, tuple) else output


def _pooled(vectors: Any, mask: Any, pooling: str) -> Any:
    """(B, d) from (B, d) or (B, L, d), detached; the type of the input."""
    if is_tensor(vectors):
        vectors = vectors.detach()
    elif not hasattr(vectors, "ndim"):
        vectors = np.asarray(vectors)
    if vectors.ndim == 2:
        return vectors
    if vectors.ndim != 3:
        raise InputError(f"vectors must have shape (B, d) or (B, L, d), got {tuple(vectors.shape)}", field="vectors")
    if pooling == "cls":
        return vectors[:, 0]
    if mask is None or tuple(mask.shape) != tuple(vectors.shape[:2]):
        return vectors[:, -1] if pooling == "last" else vectors.mean(1)
    if pooling == "last":  # padding may stand on either side
        positions = np.arange(1, vectors.shape[1] + 1) * np.asarray(mask.cpu() if is_tensor(mask) else mask)
        return vectors[list(range(len(vectors))), positions.argmax(1).tolist()]
    weights = mask[:, :, None] / mask.sum(1)[:, None, None].clip(1)
    return (vectors * weights).sum(1)


def as_rows(vectors: Any) -> NDArray[np.float32]:
    raw = vectors.float().cpu().numpy() if is_tensor(vectors) else np.asarray(vectors)
    if raw.dtype.kind not in "fiu":
        raise InputError(f"vectors must be real numbers, got an array of type {raw.dtype}", field="vectors")
    return np.array(raw, dtype=np.float32)
