"""A program for each error message of the compiler."""
