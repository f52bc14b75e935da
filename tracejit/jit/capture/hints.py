"""Cures of graph breaks."""


def hint_for(reason: str) -> str:
    return ""
