"""The flow directory on disk: safe files, journal, traces, references, state, lock and the harness digest."""
