"""What a call costs: time, memory, energy and operations, and what is derived of them."""
