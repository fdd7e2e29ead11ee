// The side: conversations, search, who is signed in, light or dark.

import { at, call } from "./api.js";
import { $, exposed, keep, kept, make, newKey, retitle, say, when } from "./dom.js";

const THEMES = ["", "light", "dark"], AGAIN = 20000;
let asked = 0, typing = 0;

let pressed = false, late = false;

addEventListener("pointerdown", (event) => { pressed = Boolean(event.target.closest?.("#list")); }, true);
for (const end of ["pointerup", "pointercancel"]) {
  addEventListener(end, () => setTimeout(() => { // the click comes first
    pressed = false;
    if (late) { late = false; list(); }
  }));
}

export const refresh = () => { list(); waits(); };

export async function list() {
  const mine = ++asked, words = $("search").value.trim();
  const found = await call("/conversations" + (words ? "?q=" + encodeURIComponent(words) : "")).catch(() => null);
  if (!found || mine !== asked) return; // a newer search is under way
  if (pressed) return void (late = true); // what is being pressed must not go away under the finger
  $("person").textContent = say("signed_in_as", { person: found.person });
  $("none").textContent = words && !found.conversations.length ? say("none_found") : "";
  const focus = document.activeElement?.closest("#list a")?.getAttribute("href");
  const lines = new Map(found.found.map((one) => [one.conversation, one]));
  $("list").replaceChildren(...found.conversations.map((one) => entry(one, lines.get(one.conversation))));
  if (focus) $("list").querySelector(`a[href="${CSS.escape(focus)}"]`)?.focus({ preventScroll: true });
}

// ---- what waits for who is signed in, in any conversation

let known = null;

async function waits() {
  const found = await call("/waiting").catch(() => null);
  if (!found) return;
  const all = found.waiting, box = $("waits");
  if (!box.contains(document.activeElement)) box.querySelector("ul").replaceChildren(...all.map((one) => make("li", {}, one.conversation
    ? make("a", { href: `#c=${one.conversation}`, title: one.text }, one.text) : make("span", { title: one.text }, one.text))));
  box.hidden = !all.length;
  $("menu").dataset.count = all.length || "";
  retitle({ waits: all.length });
  const names = all.map((one) => `${one.since} ${one.text}`), fresh = known && all.find((_, n) => !known.has(names[n]));
  known = new Set(names);
  const may = "Notification" in window ? Notification.permission : "denied";
  $("notify").hidden = may !== "default";
  if (fresh && may === "granted" && document.hidden)
    new Notification(say("waiting"), { body: fresh.text, tag: "turnkeeper" }).onclick = () => { window.focus(); if (fresh.conversation) location.hash = `c=${fresh.conversation}`; };
}

$("notify").addEventListener("click", () => Notification.requestPermission().then(waits));

function entry(one, hit) { // of a search with the line that was found, which the link leads to
  const state = one.state === "idle" ? null : make("i", { class: `dot ${one.state}`, role: "img", "aria-label": say(one.state), title: say(one.state) });
  const there = hit ? `&v=${encodeURIComponent(JSON.stringify([hit.turn, hit.name]))}` : "";
  return make("li", {}, make("a", { href: `#c=${one.conversation}${there}`, "aria-current": one.conversation === at.chat && "page" },
    state, make("span", { dir: "auto" }, exposed(one.title) || say("new")), make("time", {}, when(one.at)),
    hit && make("small", { dir: "auto" }, ...hit.parts.map((part, n) => (n % 2 ? make("mark", {}, part) : part)))));
}

export function menu(on) {
  document.body.classList.toggle("menu", on);
  $("menu").setAttribute("aria-expanded", String(on));
  $("shade").hidden = !on;
  if (on) $("new").focus();
}

export const menuOpen = () => document.body.classList.contains("menu");

function theme(chosen) {
  if (chosen) document.documentElement.dataset.theme = chosen;
  else delete document.documentElement.dataset.theme;
  keep("theme", chosen);
  $("theme").textContent = say("theme", { theme: say(`theme_${chosen || "auto"}`) });
}

theme(THEMES.includes(kept("theme")) ? kept("theme") : "");
$("theme").addEventListener("click", () => theme(THEMES[(THEMES.indexOf(document.documentElement.dataset.theme ?? "") + 1) % 3]));
$("new").addEventListener("click", () => { location.hash = "c=" + newKey(); });
$("menu").addEventListener("click", () => menu(!menuOpen()));
$("shade").addEventListener("click", () => menu(false));
$("search").addEventListener("input", () => { clearTimeout(typing); typing = setTimeout(list, 150); });
$("search").addEventListener("keydown", (event) => {
  if (event.key === "ArrowDown" || event.key === "Enter") { event.preventDefault(); $("list").querySelector("a")?.focus(); }
  if (event.key === "Escape" && $("search").value) { event.stopPropagation(); $("search").value = ""; list(); }
});
$("list").addEventListener("keydown", (event) => {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key], all = [...$("list").querySelectorAll("a")];
  if (!step) return;
  event.preventDefault();
  (all[all.indexOf(document.activeElement) + step] ?? (step < 0 ? $("search") : null))?.focus();
});
setInterval(() => (document.hidden ? waits() : refresh()), AGAIN); // what goes on in the others; the tab's title counts what waits
