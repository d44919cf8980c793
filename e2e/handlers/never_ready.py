"""Loads for ever, and never asks for a job."""

import time

print("loading", flush=True)
time.sleep(600)
