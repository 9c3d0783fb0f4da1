"""The Train page: the form, what it takes to run, presets, launch."""
