"""The usable elements of a page: each has a number, valid while its document lives, and a label for
people and the model."""

from typing import TYPE_CHECKING

from msgspec import Struct, convert

from agent_core.errors import ToolFailed

if TYPE_CHECKING:
    from playwright.async_api import ElementHandle, Frame, JSHandle, Page

MAX_ELEMENTS = 120
"""Maximum elements told; visible ones come first."""
MAX_FRAMES = 6
TRIES = 3
"""Attempts to look at a frame that is being replaced."""
GONE = "There is no element [{number}] on the page any more. Look at its state again."
CHANGED = "Element [{number}] is now {now}, it was {was}. Nothing was done. Look again."

_REGISTRY = "() => ({known: new WeakMap(), held: new Map()})"
_WANTED = (
    'a[href],button,input:not([type="hidden"]),select,textarea,summary,[role="button"],'
    '[role="link"],[role="checkbox"],[role="radio"],[role="tab"],[role="menuitem"],'
    '[role="option"],[role="switch"],[role="combobox"],[role="textbox"],[role="searchbox"],'
    '[contenteditable=""],[contenteditable="true"],[onclick]'
)
_LABEL = """
const label = (e) => {
  const tidy = (s) => (s || '').replace(/\\s+/g, ' ').trim().slice(0, 80);
  const tag = e.tagName.toLowerCase(), type = (e.getAttribute('type') || '').toLowerCase();
  const presses = ['button', 'submit', 'reset', 'image'].includes(type);
  const kind = e.getAttribute('role') || {a: 'link', select: 'list', textarea: 'text field',
    summary: 'button'}[tag] || (tag !== 'input' ? (tag === 'button' ? tag : 'element')
    : presses ? 'button' : ['checkbox', 'radio', 'file', 'range', 'color'].includes(type) ? type
    : type === 'password' ? 'password field' : 'text field');
  const by = (e.getAttribute('aria-labelledby') || '').split(' ').map((id) =>
    id && e.ownerDocument.getElementById(id)?.innerText).filter(Boolean).join(' ');
  const field = ['input', 'select', 'textarea'].includes(tag);
  const name = tidy(e.getAttribute('aria-label')) || tidy(by)
    || tidy(field && e.labels && [...e.labels].map((l) => l.innerText).join(' '))
    || tidy(presses && e.value) || tidy(!field && e.innerText) || \
tidy(e.getAttribute('placeholder'))
    || tidy(e.getAttribute('title')) || tidy(e.querySelector?.('img[alt]')?.alt)
    || tidy(e.getAttribute('alt')) || tidy(e.getAttribute('name'));
  return {kind: tidy(kind), name};
};
"""
_COLLECT = (
    """([registry, next, most, wanted]) => {"""
    + _LABEL
    + """
  const seen = [];
  const roots = [document];
  for (const root of roots) for (const e of root.querySelectorAll('*'))
    if (e.shadowRoot) roots.push(e.shadowRoot);
  for (const e of roots.flatMap((root) => [...root.querySelectorAll(wanted)])) {
    const r = e.getBoundingClientRect();
    if (r.width < 2 || r.height < 2 || !e.checkVisibility({opacityProperty: true,
      visibilityProperty: true})) continue;
    seen.push([e, r.bottom > 0 && r.right > 0 && r.top < innerHeight && r.left < innerWidth]);
  }
  const shown = [...seen.filter((s) => s[1]), ...seen.filter((s) => !s[1])].slice(0, most);
  registry.held.clear();
  const rows = shown.map(([e, near]) => {
    if (!registry.known.has(e)) registry.known.set(e, next++);
    const number = registry.known.get(e), type = e.type || '';
    registry.held.set(number, e);
    const hidden = type === 'password';
    let state = '';
    if (e.disabled) state = 'disabled';
    else if (type === 'checkbox' || type === 'radio') state = e.checked ? 'on' : 'off';
    else if (e.tagName === 'SELECT') state = '= ' + (e.selectedOptions[0]?.text || '');
    else if ('value' in e && ['INPUT', 'TEXTAREA'].includes(e.tagName) && e.value
      && !['button', 'submit', 'reset', 'image'].includes(type))
      state = '= ' + (hidden ? '••••' : e.value);
    return {...label(e), number, near, state: state.replace(/\\s+/g, ' ').slice(0, 80)};
  });
  return {rows: rows.sort((a, b) => a.number - b.number), next, left: seen.length - shown.length};
}"""
)
_FIND = "([registry, number]) => { const e = registry.held.get(number); return e?.isConnected ? e : null; }"  # noqa: E501
_NOW = "(e) => {" + _LABEL + " return label(e); }"


class _Row(Struct, frozen=True):
    kind: str
    name: str
    number: int
    near: bool
    state: str


class _Found(Struct, frozen=True):
    rows: tuple[_Row, ...]
    next: int
    left: int


class Element(Struct, frozen=True, kw_only=True):
    """One element as seen. `near`: in the visible part of the page."""

    number: int
    label: str
    state: str
    near: bool

    @property
    def line(self) -> str:
        """The line for the model."""
        far = "" if self.near else " (out of sight)"
        state = f" {self.state}" if self.state else ""
        return f"[{self.number}] {self.label}{state}{far}"


class Elements:
    """The elements of one page, as they were seen last."""

    def __init__(self) -> None:
        self.seen: dict[int, Element] = {}
        self.left = 0
        """The number of further elements."""
        self._next = 1
        self._registries: dict[Frame, JSHandle] = {}
        self._where: dict[int, Frame] = {}

    async def look(self, page: "Page") -> None:
        """Look at the page now."""
        seen: dict[int, Element] = {}
        where: dict[int, Frame] = {}
        self.left = 0
        for frame in page.frames[:MAX_FRAMES]:
            rows = await self._rows(frame, MAX_ELEMENTS - len(seen))
            for row in rows:
                label = f"{row.kind} “{row.name}”" if row.name else row.kind
                seen[row.number] = Element(
                    number=row.number, label=label, state=row.state, near=row.near
                )
                where[row.number] = frame
        self.seen, self._where = seen, where

    async def find(self, number: int) -> "ElementHandle":
        """Return the element, if it is unchanged; ToolFailed if it is not."""
        from playwright.async_api import Error

        frame, known = self._where.get(number), self.seen.get(number)
        registry = self._registries.get(frame) if frame is not None else None
        if frame is None or known is None or registry is None:
            raise ToolFailed(GONE.format(number=number))
        try:
            held = await frame.evaluate_handle(_FIND, [registry, number])
            element = held.as_element()
            if element is None:
                raise ToolFailed(GONE.format(number=number))
            said = await element.evaluate(_NOW)
        except Error:
            raise ToolFailed(GONE.format(number=number)) from None
        now = f"{said['kind']} “{said['name']}”" if said["name"] else said["kind"]
        if now != known.label:
            raise ToolFailed(CHANGED.format(number=number, now=now, was=known.label))
        return element

    async def _rows(self, frame: "Frame", most: int) -> tuple[_Row, ...]:
        from playwright.async_api import Error

        for _ in range(TRIES):
            try:
                if frame not in self._registries:
                    self._registries[frame] = await frame.evaluate_handle(_REGISTRY)
                given = [self._registries[frame], self._next, most, _WANTED]
                found = convert(await frame.evaluate(_COLLECT, given), _Found)
            except Error:  # the frame has another document now
                self._registries.pop(frame, None)
                continue
            self._next, self.left = found.next, self.left + found.left
            return found.rows
        return ()
