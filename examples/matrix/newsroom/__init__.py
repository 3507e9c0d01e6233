"""The newsroom: a desk at which agents work, and scripted agents that need neither a key nor a network."""
