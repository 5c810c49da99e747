"""`make demo`: the whole product on one machine, with real servers, in a few minutes.

A control plane, a broker, Prometheus, the operator and six agents of three classes. A job adapts a digit classifier to
what each device sees; half-way one class loses memory and gets it back; at the end one device is rolled back. The stage
(what runs) and the cast (who plays) also serve the end-to-end tests.
"""
