// Where a person is signed in, in a dialog that is loaded when it is first asked for: to look, to end one, to sign out.

import { call } from "./api.js";
import { $, make, say, when } from "./dom.js";

const box = $("signins"), list = $("signins-list");
let asked = 0;

export async function show() {
  if (!box.open) box.showModal();
  $("signins-title").focus();
  tell("");
  await load();
}

const tell = (words) => ($("signins-told").textContent = words);

async function load() {
  const mine = ++asked;
  try {
    const { sessions } = await call("/sessions");
    if (mine === asked) list.replaceChildren(...sessions.map(entry));
  } catch (error) {
    if (mine === asked) tell(error.message);
  }
}

function entry(one) {
  const device = one.device || say("session_unknown");
  const label = say(one.current ? "sign_out" : "session_end");
  const button = make("button", { type: "button", class: "bad", "aria-label": `${label}: ${device}`, onclick: () => end(one, device) }, label);
  return make("li", { class: "card", "aria-label": device },
    make("div", { class: "head" }, make("h3", {}, device), one.current && make("span", { class: "risk" }, say("session_current"))),
    make("p", { class: "faint" }, say("session_since", { begun: when(one.began), over: when(one.expires) })),
    make("div", { class: "buttons" }, button));
}

async function end(one, device) {
  try {
    await call(one.current ? "/signout" : `/sessions/${encodeURIComponent(one.id)}`, { method: one.current ? "POST" : "DELETE" });
    if (one.current) return location.replace("/"); // it says how to sign in
    tell(say("session_ended", { device }));
    $("signins-title").focus();
  } catch (error) {
    tell(error.message);
  }
  await load();
}

$("signins-close").addEventListener("click", () => box.close());
box.addEventListener("click", (event) => { if (event.target === box) box.close(); }); // beside it
