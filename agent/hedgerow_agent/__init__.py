"""What runs on a device.

`session` (MQTT) turns messages into events; `machine` (pure) turns events into instructions; `runner`, `store` and
`session` carry them out. `core/` is the training core. Nothing here may import the operator or the cluster's libraries.
"""
