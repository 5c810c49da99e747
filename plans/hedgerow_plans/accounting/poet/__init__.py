"""POET's networks and cost model (Patil et al. 2022), rebuilt from their rules as bare planning problems.

Its rules are its own, not ours: convolutions are charged for their input's size whatever their stride, linear layers
for one row whatever the batch, and gradients form one chain. So they are kept, to compare with its published figures.
"""
