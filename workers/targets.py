"""The targets file: which servers the fleet may call, how fast, with which credentials and under which policy.

A target's policy fields are defaults for all its tools and may be set again under `tools:`. What the protocol promises
is no operator's word: it comes from the adapter's profile. Every problem of a file is reported at once, with its line.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType

from pydantic import BaseModel, ValidationError

from ..adapters import presets, registry
from ..adapters.contract import Endpoint
from ..adapters.http_api import HttpApi, Key, Places, Routes, Statuses
from ..adapters.profile import Lookup, Profile
from ..ledger.digest import canonical_json
from ..ledger.errors import CounterfoilError, InputRefused
from ..ledger.policy import Policy
from . import declared_faults, yaml_lines
from .bucket import Limit
from .file_faults import described, dotted, told
from .target_entries import (
    API_KEYS,
    Credentials,
    LookupEntry,
    Overrides,
    Poll,
    Shares,
    TargetEntry,
    TargetsFile,
    ToolEntry,
)
from .yaml_lines import Document, KeyPath, Problem

NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$"
"""What a target may be called."""


class TargetsError(CounterfoilError):
    """The targets file is missing or can't be used. `problems` holds one `file:line: …` for each fault."""

    code = "E_TARGETS"

    def __init__(
        self, message: str, problems: Iterable[str] = (), *, code: str | None = None, next_step: str = ""
    ) -> None:
        self.problems = tuple(problems)
        super().__init__("\n  ".join((message, *self.problems)), code=code, next_step=next_step)


class UnknownTarget(InputRefused):
    """No target of that name is configured. The text names the nearest ones."""

    code = "E_TARGET_UNKNOWN"


@dataclass(frozen=True, slots=True)
class Target:
    """One configured server."""

    name: str
    profile: Profile
    _entry: TargetEntry

    @property
    def protocol(self) -> str:
        return self._entry.protocol

    @property
    def allow_private(self) -> bool:
        """Whether its address may be a private one."""
        return self._entry.allow_private

    @property
    def tools(self) -> tuple[str, ...]:
        """The tools that have settings of their own; others may be called all the same."""
        return tuple(self._entry.tools)

    @property
    def limit(self) -> Limit:
        return Limit(self._entry.qps, self._entry.burst, self._entry.shares.model_dump())

    def endpoint(self) -> Endpoint:
        return Endpoint(
            name=self.name,
            url=self._entry.url,
            deadline_s=self._entry.deadline_s,
            max_response_bytes=self._entry.max_response_bytes,
            not_processed_statuses=frozenset(self._entry.not_processed_statuses),
        )

    def credential_for(self, principal: str) -> str | None:
        """The reference of the credential to use on behalf of a principal: its own, or the target's default."""
        credentials = self._entry.credentials
        return credentials.principals.get(principal, credentials.default)

    def output_schema(self, tool: str) -> bytes | None:
        """The operator's schema of a tool's result, as RFC 8785 text. It counts where the server publishes none."""
        found = self._entry.tools.get(tool)
        return None if found is None or found.output_schema is None else canonical_json(found.output_schema)

    def policy(self, tool: str, principal: str = "") -> Policy:
        """What holds for a new operation of this tool: the protocol's promises, the target's defaults, the tool's own.

        A tool that the file does not name has the target's defaults.
        """
        api, bound_s = self.api(tool), self.sync_bound_s(tool)
        profile = self.profile if api is None else api.of_profile(self.profile)
        asked = self._entry.for_policy() | self._own(tool).for_policy()
        # Where the cancel's answer is all the evidence there is, the work may run on behind it (SPEC section 5).
        leftovers = asked.get("effects", True) and profile.cancel_is_evidence and not asked.get("cancel_stops", False)
        fields: dict[str, object] = {
            "settle_s": profile.settle_s,
            "effect_case": "always" if leftovers else "on_evidence",
            **asked,
            "protocol": profile.protocol,
            "can_cancel": profile.can_cancel and asked.get("can_cancel", True),
            "cancel_is_evidence": profile.cancel_is_evidence,
            "sync": profile.sync,
            "result_separate": profile.result_separate,
            "reply_replay": profile.reply_replay.value,
            "lookup": profile.lookup.value,
            "absence": None if profile.absence is None else profile.absence.value,
            **self._lookup_fields(tool, api),
            "api": "" if api is None else api.text(),
            "url": self._entry.url,
            "credential": self.credential_for(principal) or "",
        }
        if not profile.watches_input:
            fields["input_watch_s"] = 0.0
        policy = Policy.model_validate(fields)
        if bound_s is None:
            return policy
        # A first byte may leave until `send_by`: no answer is overdue before.
        return policy.model_copy(update={"answer_by_s": max(bound_s, policy.send_by_s)})

    def api(self, tool: str) -> HttpApi | None:
        """What the file declares of a tool's API; None where the protocol leaves nothing to declare.

        Raises ValidationError: what was written does not fit together.
        """
        if not self.profile.declares:
            return None
        own = self._own(tool)
        preset = own.preset or self._entry.preset
        return presets.declared(self.protocol, preset, self._entry.declared(), own.declared())

    def lookup(self, tool: str) -> LookupEntry | None:
        """How a lost submit of a tool is found again, where the file says so."""
        own = self._own(tool).lookup
        return self._entry.lookup if own is None else own

    def _lookup_fields(self, tool: str, api: HttpApi | None) -> dict[str, object]:
        """What the tool's owner declared about lost submits, where anything was."""
        declared = self.lookup(tool)
        route = None if api is None else api.routes.lookup
        if declared is None and route is None:
            return {}
        declared = declared or LookupEntry()
        way: dict[str, object] = {} if declared.tool is None else {"lookup": "by_key"}  # else the route's own
        return {
            **({"lookup": "replay"} if declared.replay else way),
            "lookup_tool": declared.tool or "",
            "absence": declared.absence,
            "bounded_allowed": declared.absence == "bounded",
            "key_lifetime_s": declared.key_lifetime_s,
        }

    def sync_bound_s(self, tool: str) -> float | None:
        """The bound that was published for a call that blocks until it is over; None where there is none."""
        own = self._own(tool).sync_bound_s
        return self._entry.sync_bound_s if own is None else own

    def objection(self, tool: str) -> str | None:
        """Why no call of this tool may be sent to this target (E_CAPABILITY_UNSUPPORTED), whatever its server offers;
        None: it may."""
        own, api = self._own(tool).require_lookup, self.api(tool)
        profile = self.profile if api is None else api.of_profile(self.profile)
        if (
            (self._entry.require_lookup if own is None else own)
            and profile.lookup is Lookup.NONE
            and self.lookup(tool) is None
        ):
            return (
                f"Not sent: {self.name} offers no lookup of a lost submit of {tool}, and `require_lookup` asks for it."
            )
        if self.profile.sync and self.sync_bound_s(tool) is None:
            return (
                f"Not sent: {self.name} publishes no sync bound for {tool}, whose calls block until their end under "
                f"{self.protocol}. Set `sync_bound_s` to the longest that it takes."
            )
        return None

    def _own(self, tool: str) -> Overrides:
        return self._entry.tools.get(tool, Overrides())


class Targets:
    """The configured targets, by name."""

    def __init__(self, targets: Mapping[str, Target]) -> None:
        self._targets = MappingProxyType(dict(targets))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._targets)

    @property
    def limits(self) -> dict[str, Limit]:
        """Each target's limit, for the bucket."""
        return {name: target.limit for name, target in self._targets.items()}

    def __contains__(self, name: object) -> bool:
        return name in self._targets

    def __getitem__(self, name: str) -> Target:
        """Raises UnknownTarget (E_TARGET_UNKNOWN)."""
        try:
            return self._targets[name]
        except KeyError:
            near = " or ".join(self.near(name))
            raise UnknownTarget(
                f"no target {name[:64]!r} is configured." + (f" Did you mean {near}?" if near else ""),
                next_step=f"The targets file has: {', '.join(self.names)}.",
            ) from None

    def near(self, name: str) -> list[str]:
        """Up to three configured names that look like this one, the nearest first."""
        return get_close_matches(name[:64], self.names)


def load_targets(path: Path) -> Targets:
    """Read the targets file. Raises TargetsError with every fault of it (E_TARGETS, E_NO_TARGETS)."""
    try:
        document = yaml_lines.read(path)
    except OSError as error:
        raise _unreadable(path, error) from None
    problems, targets = document.problems, dict[str, Target]()
    if document.value is not None or not problems:
        try:
            TargetsFile.model_validate(document.value or {})
        except ValidationError as error:
            problems += described(document, (), error, _known_keys, {"too_short": "names no target."})
        for name, value in _written(document.value).items():
            try:
                entry = TargetEntry.model_validate(value)
            except ValidationError as error:
                problems += described(document, ("targets", name), error, _known_keys)
            else:
                targets[name] = Target(name, registry.adapter(entry.protocol).profile, entry)
                problems += _policy_problems(document, targets[name])
    if problems:
        raise TargetsError(
            "the targets file can't be used. Correct these lines and start again:",
            [f"{path}:{line}: {message}" for line, message in sorted(set(problems))],
        )
    return Targets(targets)


def _written(document: object) -> dict[str, object]:
    """The targets as written: a fault beside them must not hide theirs."""
    targets = document.get("targets") if isinstance(document, dict) else None
    return targets if isinstance(targets, dict) else {}


def _unreadable(path: Path, error: OSError) -> TargetsError:
    missing = isinstance(error, FileNotFoundError)
    return TargetsError(
        f"there is no targets file {path}." if missing else f"the targets file {path} can't be read: {error.strerror}.",
        code="E_NO_TARGETS" if missing else None,
        next_step="Write one (docs/targets.md), or set COUNTERFOIL_TARGETS_FILE to where it is.",
    )


def _known_keys(path: KeyPath) -> list[str]:
    models: dict[KeyPath, type[BaseModel]] = {
        ("poll",): Poll,
        ("lookup",): LookupEntry,
        ("routes",): Routes,
        ("statuses",): Statuses,
        ("fields",): Places,
        ("key",): Key,
        ("shares",): Shares,
        ("credentials",): Credentials,
    }
    match path:
        case ():
            model: type[BaseModel] = TargetsFile
        case ("targets", _):
            model = TargetEntry
        case ("targets", _, "tools", _):
            model = ToolEntry
        case _:
            model = models[path[-1:]]
    return list(model.model_fields)


def _policy_problems(document: Document, target: Target) -> Iterator[Problem]:
    """What only shows when defaults, a tool's own settings and the protocol's facts are put together."""
    above: KeyPath = ("targets", target.name)
    if not re.fullmatch(NAME, target.name):
        yield document.line(above), f"{target.name!r}: a name has letters, digits, '.', '_' and '-', 63 at most."
    for tool in ("", *target.tools):
        own = (*above, "tools", tool)

        def at(field: str, own: KeyPath = own) -> Problem:
            key = ("poll", field.removeprefix("poll_")) if field.startswith("poll_") else (field,)
            path = (*own, *key) if (*own, *key) in document.lines else (*above, *key)
            return document.line(path), dotted(path)

        try:
            policy = target.policy(tool)
        except ValidationError as error:
            for fault in error.errors(include_input=False, include_url=False):
                # A rule over several fields has no place of its own; Policy has one, and it is about `on_unknown`.
                line, name = at(str(fault["loc"][0]) if fault["loc"] else "on_unknown")
                yield line, f"{name}: {told(fault['msg'])}"
            continue
        written = {name for name in API_KEYS if (*own, name) in document.lines or (*above, name) in document.lines}
        for field, what in declared_faults.faults(target.profile, target.api(tool), target.lookup(tool), written):
            line, name = at(field)
            yield line, f"{name}: {what}"
        # A key that the protocol has no use for would be a silent wish.
        foreign, why = ("answer_by_s", "block") if policy.sync else ("sync_bound_s", "don't block")
        path = (*own, foreign) if tool else (*above, foreign)
        if path in document.lines:
            yield (
                document.line(path),
                f"{dotted(path)}: is not for {target.protocol}, whose calls {why} until their end.",
            )
        for low, high, least, most in (
            ("poll_min_s", "poll_max_s", policy.poll_min_s, policy.poll_max_s),
            ("send_by_s", "answer_by_s", policy.send_by_s, policy.answer_by_s),
            ("max_result_bytes", "max_response_bytes", policy.max_result_bytes, target.endpoint().max_response_bytes),
        ):
            if least > most:
                line, name = max(at(low), at(high))
                yield line, f"{name}: {low} ({least:.15g}) must not be above {high} ({most:.15g})."
