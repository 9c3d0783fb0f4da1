"""The parts of the Atlas page."""
