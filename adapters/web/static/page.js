// The page put together: which conversation, and what belongs to no part of it.

import { at, post } from "./api.js";
import { $, keep, kept, newKey, say, toast } from "./dom.js";
import { close, connected, earlier, jump, load, onStanding, open, toEnd } from "./talk.js";
import { begin, give, restore, send } from "./compose.js";
import { calm, standing } from "./manage.js";
import { menu, menuOpen, refresh } from "./side.js";
import "./keys.js";

const named = (hash) => /^#c=([\w-]{1,64})(?:&v=([^&]{1,300}))?$/.exec(hash) ?? [];

function read(place) { // of an address that somebody wrote perhaps
  try { return place && decodeURIComponent(place); } catch { return ""; }
}

function follow() {
  const [, id, place] = named(location.hash), view = read(place);
  if (!id) return location.replace("#c=" + (kept("last") || newKey()));
  if (id === at.chat) return view && jump(view);
  keep("last", id);
  calm();
  open(id).then(() => view && jump(view));
  restore();
  refresh();
  menu(false);
  if (!matchMedia("(pointer: coarse)").matches) $("text").focus({ preventScroll: true }); // no keyboard springs up on a phone
}

onStanding((changed) => { standing(); if (changed) refresh(); });
$("stop").addEventListener("click", () => post("/stop", {}).catch((error) => toast(error.message)));
$("earlier").addEventListener("click", earlier);
$("down").addEventListener("click", () => { toEnd(); $("text").focus({ preventScroll: true }); });
$("jobs").addEventListener("click", () => { menu(false); import("./jobs.js").then((jobs) => jobs.show(), () => toast(say("no_gateway"))); });
$("sessions").addEventListener("click", () => { menu(false); import("./sessions.js").then((sessions) => sessions.show(), () => toast(say("no_gateway"))); });
$("log").addEventListener("click", (event) => { // a command that a text names
  const one = event.target.closest("button.command");
  if (!one) return;
  if (one.dataset.runs !== "true") return begin(one.dataset.command);
  if (one.ariaBusy === "true") return; // not disabled: the focus stays
  one.ariaBusy = "true";
  give(one.dataset.command).catch((error) => toast(error.message)).then(() => (one.ariaBusy = null));
});
document.querySelectorAll("[data-say]").forEach((node) => node.addEventListener("click", () => send(node.dataset.say)));
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && menuOpen()) { menu(false); $("menu").focus(); }
  if (event.key === "k" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); if (matchMedia("(max-width: 760px)").matches) menu(true); $("search").focus(); }
});
document.addEventListener("visibilitychange", () => { if (document.hidden) close(); else if (!connected()) load(); }); // a browser has few connections to spare
addEventListener("hashchange", follow);
addEventListener("online", () => { if (!connected()) load(); });
follow();
