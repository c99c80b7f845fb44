"""The engine: definitions running, with guards, hooks, data and timers.

Each event that is sent is one transaction: what decides it, what its hooks write, every step that
follows by itself, what changed of the data, and which timers run. `program` is a definition made
ready, `choosing` says which branch is taken, `running` takes it, `sending` is the plan of a fire,
`beginning` that of a birth; `engine` and `handle` are what programs use.
"""
