"""Which executions a run is made of: every case times every repetition, in the author's order."""
