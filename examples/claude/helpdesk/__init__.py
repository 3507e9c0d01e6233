"""The help desk of a bicycle shop: Claude, with three tools."""
