"""The training loop (`isoviz.training.loop`), directly on accelerate, and its measurements."""
