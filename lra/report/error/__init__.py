"""How far approximations are from softmax attention."""
