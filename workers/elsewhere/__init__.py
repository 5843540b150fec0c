"""Measuring on a machine without paretovit: a folder that is carried there, and its results, which are brought back."""

PROTOCOL = "elsewhere-1"
"""Of `script.py`: the same steps as on a host, in onnxruntime, without the lock that keeps trainings of ours away."""
