"""One record for each op: types, shape rule, eager form, scalar text, gradient rule."""
