"""What runs in the cluster and at the terminal.

`handlers` (kopf) call one reconcile: `gather` (I/O) takes a snapshot of the world, `decide` (pure) returns actions,
`perform` (I/O) carries them out. Nothing here may import the agent.
"""
