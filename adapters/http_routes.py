"""Routes of an HTTP API as its operator declares them, and URLs that its server hands out.

A server's URL is followed only within the target's own origin: anything else would carry our credential, or our
trust, to a place that nobody configured.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import quote, unquote, urljoin, urlsplit

MAX_URL_CHARS = 2000

_PLACEHOLDER = re.compile(r"\{([a-z]+)\}")
_PATH = re.compile(r"/(?!/)[!-~]*")
_PRINTABLE = re.compile(r"[!-~]+")
_PORTS = {"http": 80, "https": 443}
_DOTS = {".": "%2E", "..": "%2E%2E"}


class ForeignUrl(ValueError):
    """A server named a URL outside the target's origin (E_CROSS_ORIGIN_REDIRECT), or none at all."""

    code = "E_CROSS_ORIGIN_REDIRECT"


@dataclass(frozen=True, slots=True)
class Route:
    """`POST /jobs/{id}/cancel`: a verb, and a path that is appended to the target's URL. `{name}` keeps its slashes."""

    verb: str
    path: str

    def names(self, placeholder: str) -> bool:
        return f"{{{placeholder}}}" in self.path

    @property
    def key_in_path(self) -> bool:
        """Whether the key names the thing itself, and is no filter over a collection."""
        return "{key}" in self.path.partition("?")[0]

    def url(self, base: str, **values: str) -> str:
        """Of a target at `base`. Never raises: whatever a value holds, it stays in its place."""
        return base.rstrip("/") + _PLACEHOLDER.sub(lambda found: _placed(found[1], values[found[1]]), self.path)

    def id_in(self, base: str, url: str) -> str | None:
        """The id in a URL of the target that this route has; None for any other URL."""
        path, _, query = from_root(url).partition("?")
        template = urlsplit(base).path.rstrip("/") + self.path
        found = _compiled(template).fullmatch(f"{path}?{query}" if "?" in template else path)
        return None if found is None else unquote(found["id"])


def parse(text: str, verbs: Collection[str], allowed: Collection[str], needed: Collection[str] = ()) -> Route:
    """One declared route. `needed`: one of these placeholders has to stand in it. Raises ValueError."""
    verb, _, path = text.partition(" ")
    if verb not in verbs or not _PATH.fullmatch(path):
        raise ValueError(f"must be a verb ({' or '.join(verbs)}) and a path: `{next(iter(verbs))} /jobs`")
    bare, found = _PLACEHOLDER.sub("", path), _PLACEHOLDER.findall(path)
    if "{" in bare or "}" in bare or "#" in path or len(path) > MAX_URL_CHARS:
        raise ValueError("holds a brace or a '#' that belongs to no placeholder")
    strangers = [name for name in found if name not in allowed]
    if strangers or len(set(found)) != len(found):
        places = ", ".join(f"{{{name}}}" for name in allowed)
        raise ValueError(f"may hold {places}, each once")
    if needed and len([name for name in found if name in needed]) != 1:
        raise ValueError(f"needs {' or '.join(f'{{{name}}}' for name in needed)}")
    return Route(verb, path)


def same_origin(base: str, asked: str, location: str) -> str:
    """A URL that a server handed out, absolute and without its fragment, as an answer to `asked`.

    Raises ForeignUrl: it leaves the origin of `base`, or can't be read.
    """
    if not _PRINTABLE.fullmatch(location) or len(location) > MAX_URL_CHARS:
        raise ForeignUrl("the server named a place that is no URL")
    try:
        url = urljoin(asked, location).partition("#")[0]
        foreign = _origin(url) != _origin(base) or "@" in urlsplit(url).netloc
    except ValueError:
        raise ForeignUrl("the server named a place that is no URL") from None
    if foreign:
        raise ForeignUrl("the server named a place outside of the target's origin")
    return url


def from_root(url: str) -> str:
    """A URL of the target without its origin: path and query."""
    parts = urlsplit(url)
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


def at_root(base: str, place: str) -> str:
    """The inverse of `from_root`. Never raises: a place that is none becomes a path of the target."""
    parts = urlsplit(base)
    kept = place if _PATH.fullmatch(place) and "#" not in place else f"/{quote(place, safe='')}"
    return f"{parts.scheme}://{parts.netloc}{kept}"


def is_usable_id(text: str, *, slashes: bool) -> bool:
    """Whether an id can stand in a path: `.` and `..` would be taken for steps through it."""
    parts = text.split("/") if slashes else [text]
    return all(part not in ("", ".", "..") for part in parts)


def _placed(name: str, value: str) -> str:
    parts = value.split("/") if name == "name" else [value]
    return "/".join(_DOTS.get(part) or quote(part, safe="") for part in parts)


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or _PORTS.get(parts.scheme)


@lru_cache(maxsize=1024)
def _compiled(template: str) -> re.Pattern[str]:
    parts = _PLACEHOLDER.split(template)
    return re.compile("".join(_pattern(part) if index % 2 else re.escape(part) for index, part in enumerate(parts)))


def _pattern(name: str) -> str:
    return "(?P<id>[^?]+)" if name == "name" else "(?P<id>[^/?]+)" if name == "id" else "[^/?]+"
