"""Ops of the compiler: a record for each op, with its types, shape rule, eager form, scalar text
and gradient rule."""
