"""The Train page: the form, presets, estimates and launch."""
