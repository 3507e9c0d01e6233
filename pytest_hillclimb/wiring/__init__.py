"""Everything that touches pytest. Nothing here is imported in a session that runs no evals."""
