"""A simulated device for tests, and what is computed on it and on the CPU."""
