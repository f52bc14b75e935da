"""Hooks of the site's build: pages made from other files, pictures, a check of what pages load.

In: mkdocs' events. Out: the pages of `api/`, root documents as pages, drawings, and an error for a
page that loads anything from the network.
"""

import os
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(Path(__file__).parent), str(ROOT)]
import names  # noqa: E402

WHOLE = os.environ.get("DOCS_WHOLE") != "false"
if WHOLE:
    import pictures
from mkdocs.exceptions import PluginError  # noqa: E402
from mkdocs.structure.files import File, Files  # noqa: E402

DOCUMENTS = {"CHANGELOG.md": "changelog.md", "SECURITY.md": "security.md",
             "CONTRIBUTING.md": "contributing.md", "CITATION.cff": "citation.md"}
LOADED = re.compile(  # what a browser fetches unasked
    r"<(?:script|img|iframe|source|video|audio)\b[^>]*\bsrc=[\"']?(?:https?:)?//[^\"' >]+"
    r"|<link\b(?=[^>]*rel=[\"']?(?:stylesheet|preload|icon|preconnect))"
    r"[^>]*href=[\"']?(?:https?:)?//[^\"' >]+"
    r"|@import\s+(?:url\()?[\"']?(?:https?:)?//[^\"' )]+|url\([\"']?(?:https?:)?//[^\"')]+")


def on_config(config: Any) -> Any:
    """Expand `folder/` in the navigation to the pages of the folder."""
    config.nav = _expanded(config.nav)
    return config


def _expanded(nav: list[Any]) -> list[Any]:
    found: list[Any] = []
    for entry in nav:
        if isinstance(entry, dict):
            ((title, inside),) = entry.items()
            inside = _expanded(inside) if isinstance(inside, list) else inside
            found += [{title: inside}] if inside else []
        elif entry == "api/":
            found.append({"API": ["api/index.md", *(f"api/{key}.md" for key in names.all_pages())]})
        elif entry.endswith("/"):
            pages = sorted((ROOT / "docs" / entry).glob("*.md"),
                           key=lambda page: (page.stem != "index", page))
            inside = [page.relative_to(ROOT / "docs").as_posix() for page in pages]
            alone = len(nav) == 1 or not inside
            found += inside if alone else [{entry[:-1].replace("_", " ").capitalize(): inside}]
        elif (ROOT / "docs" / entry).exists() or entry in DOCUMENTS.values():
            found.append(entry)
        else:
            raise PluginError(f"mkdocs.yml: docs/{entry} is not there")
    return found


def on_files(files: Files, config: Any) -> Files:
    """Add the pages and drawings that the build makes."""
    made: dict[str, str] = reference_pages()
    if WHOLE:  # else the pictures in docs/pictures stay
        made |= pictures.all_pictures()
    for source, page in DOCUMENTS.items():
        made[page] = document(source)
    for uri, content in made.items():
        if uri in files.src_uris:
            files.remove(files.src_uris[uri])
        files.append(File.generated(config, uri, content=content))
    return files


def document(source: str) -> str:
    """Return a document of the repository's root as a page; its links start from `docs/` then."""
    text = (ROOT / source).read_text()
    if source.endswith(".cff"):
        return CITATION + f"\n```yaml\n{text}```\n"
    return text.replace("](docs/", "](").replace("](CONTRIBUTING.md", "](contributing.md")


CITATION = """# Citation

Cite tracejit by its repository file `CITATION.cff`, which reference managers read:
"""


def reference_pages() -> dict[str, str]:
    """Return the pages of the API: {uri: Markdown}."""
    made, index = {}, ["# API reference\n", INDEX]
    for key, (title, text, held) in names.all_pages().items():
        count = sum(map(len, held.values()))
        index.append(f"- [{title}]({key}.md): {text} {count} names.")
        made[f"api/{key}.md"] = f"# {title}\n\n{text}\n\n" + "\n".join(
            _section(place, members, len(held) > 1) for place, members in held.items())
    made["api/index.md"] = "\n".join(index) + "\n"
    return made


INDEX = """These pages are written from the package itself: each name is the object that a program
gets. [Additions](../additions.md) lists what is tracejit's own in one table.
[Coverage](../coverage.md) lists all of PyTorch's names, with what shows that ours behave alike.
"""


def _section(place: str, members: tuple[str, ...], several: bool) -> str:
    lines = [f"## {place}\n"] if several else []
    return "\n".join([*lines, *(f"::: {place}.{name}\n" for name in members)])


def on_post_build(config: Any) -> None:
    """End the build if a page or a style would load something from the network."""
    bad = []
    for path in sorted(Path(config.site_dir).rglob("*")):
        if path.suffix in (".html", ".css"):
            bad += [f"{path.name}: {found[0]}" for found in LOADED.finditer(path.read_text())]
    if bad:
        raise PluginError("pages load from the network:\n" + "\n".join(bad[:20]))
