"""Real servers on loopback for the tests and the demo: Kubernetes, MQTT, Prometheus and Helm.

What belongs here: starting a server in a folder of the caller's on ports nobody uses, waiting until it
answers, and stopping exactly what was started, in whatever way the starter ends. What does not: obtaining the
programs (`provision` does that), and anything of Hedgerow itself. Every `start` is a context manager and says
nothing unless it is given a `say`.
"""
