"""From a forward graph to a training graph: differentiate at plan time, prune, place the updates."""
