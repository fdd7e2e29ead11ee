// Jobs: what is done again and again, in a dialog that is loaded when it is first asked for.

import { act, call } from "./api.js";
import { $, LANGUAGE, exposed, make, say } from "./dom.js";
import { write } from "./compose.js";

const box = $("agenda"), list = $("agenda-list"), AGAIN = 5000;
const DONE = { run: "job_run", pause: "job_pause", resume: "job_resume", delete: "job_delete" };
const FIELDS = { title: "job_title", schedule: "job_schedule", zone: "job_zone", model: "job_model", profile: "job_profile", tools: "job_tools", prompt: "job_prompt" }; // what is said of each
let asked = 0, drawn = "", pressed = false, sure = "", edited = "", opened = new Map(); // job -> its runs

export async function show() {
  if (!box.open) box.showModal();
  $("agenda-title").focus();
  tell("");
  await load();
}

const tell = (words) => ($("agenda-told").textContent = words);
const path = (job) => `/jobs/${encodeURIComponent(job)}/runs`;

async function load() {
  const mine = ++asked;
  try {
    const { jobs } = await call("/jobs");
    for (const id of opened.keys()) {
      if (!jobs.some((one) => one.id === id)) opened.delete(id);
      else opened.set(id, (await call(path(id))).runs);
    }
    if (mine === asked && !pressed && !list.querySelector("form")) draw(jobs); // what is being written stays; a newer look is under way; or a button would go away under the finger
  } catch (error) {
    if (mine === asked) tell(error.message);
  }
}

function draw(jobs) {
  const now = JSON.stringify([jobs, [...opened], sure, edited]);
  if (now === drawn) return;
  drawn = now;
  const within = list.contains(document.activeElement), focus = document.activeElement.dataset.keep, at = new Map();
  for (const one of list.querySelectorAll(".runs")) at.set(one.dataset.keep, one.scrollTop);
  list.replaceChildren(...(jobs.length ? jobs.map(entry) : [make("li", { class: "faint" }, say("jobs_none"))]));
  for (const one of list.querySelectorAll(".runs")) one.scrollTop = at.get(one.dataset.keep) ?? 0;
  if (within) ([...list.querySelectorAll("[data-keep]")].find((one) => one.dataset.keep === focus) ?? $("agenda-title")).focus({ preventScroll: true });
}

function when(moment, zone) {
  const shown = { weekday: "short", day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", hourCycle: "h23" };
  try {
    return new Date(moment).toLocaleString(LANGUAGE, { ...shown, timeZone: zone });
  } catch { return new Date(moment).toLocaleString(LANGUAGE, { ...shown, timeZoneName: "short" }); } // a zone that this browser does not know
}

function entry(job) {
  const next = job.next.map((one) => when(one, job.zone)).join(" · "), last = job.last && { when: when(job.last.due, job.zone), state: job.last.words };
  return make("li", { class: `card job ${job.state}`, "aria-label": job.title },
    make("div", { class: "head" }, make("h3", { dir: "auto" }, exposed(job.title)), make("span", { class: "risk" }, say(`jobs_${job.state}`))),
    make("p", { class: "faint" }, `${job.words} (${job.zone})`),
    means(job) && make("p", { class: "faint means" }, say("jobs_with", { means: means(job) })),
    next && make("p", {}, say("jobs_next", { times: next })),
    make("p", { class: job.last?.state === "failed" ? "bad" : "" }, last ? say("jobs_last", last) : say("jobs_never")),
    edited === job.id ? form(job) : buttons(job), opened.has(job.id) && history(job));
}

function form(job) {
  const fields = Object.entries(FIELDS).map(([name, label]) => {
    const long = name === "prompt", more = { class: "field", name, "data-keep": `${job.id} ${name}`, ...(long ? { rows: "3" } : { type: "text" }) };
    const field = make(long ? "textarea" : "input", more);
    field.value = job[name];
    return make("label", {}, say(label), field);
  });
  const back = () => leave(job, "edit");
  return make("form", { "aria-label": `${say("jobs_edit")}: ${job.title}`, onsubmit: (event) => { event.preventDefault(); save(job, event.target); }, onkeydown: (event) => { if (event.key === "Escape") { event.preventDefault(); back(); } } },
    ...fields, make("div", { class: "buttons" }, make("button", { type: "submit", class: "good" }, say("save")),
      make("button", { type: "button", onclick: () => inWords(job) }, say("job_words")), make("button", { type: "button", onclick: back }, say("cancel"))));
}

async function leave(job, name) { // back to the buttons, with the focus on one of them
  edited = "";
  list.querySelector("form")?.remove();
  await load();
  [...list.querySelectorAll("[data-keep]")].find((one) => one.dataset.keep === `${job.id} ${name}`)?.focus();
}

async function save(job, form) {
  const said = Object.fromEntries(Object.keys(FIELDS).map((name) => [name, form.elements[name].value.trim()]).filter(([name, value]) => value !== job[name].trim()));
  try {
    if (Object.keys(said).length) await act(job.id, "edit", said);
    tell(say("job_changed", { title: said.title ?? job.title }));
    await leave(job, "edit");
  } catch (error) {
    tell(error.message);
  }
}

const MEANS = ["model", "profile", "tools"];
const means = (job) => MEANS.filter((name) => job[name]).map((name) => `${name} ${job[name]}`).join(", ");

function buttons(job) {
  const row = make("div", { class: "buttons", role: "group", "aria-label": job.title });
  const add = (name, action, label, more = {}) => row.append(make("button", { type: "button", "data-keep": `${job.id} ${name}`, onclick: action, ...more }, label));
  add("run", () => done(job, "run"), say("jobs_run"));
  if (job.state === "active") add("turn", () => done(job, "pause"), say("jobs_pause"));
  if (job.state === "paused") add("turn", () => done(job, "resume"), say("jobs_resume"));
  add("edit", () => edit(job), say("jobs_edit"));
  add("history", () => fold(job), say("jobs_history"), { "aria-expanded": String(opened.has(job.id)) });
  add("delete", () => remove(job), say(sure === job.id ? "job_sure" : "jobs_delete"), { class: "bad" });
  return row;
}

function history(job) {
  const runs = opened.get(job.id).map((run) => make("li", {}, make("b", {}, when(run.due, job.zone)), ` ${run.words}`,
    ...run.tried.map((one) => make("small", {}, say("jobs_tried", { when: when(one.at * 1000, job.zone), why: one.text ?? "" }))),
    ...run.delivered.map((one) => make("small", {}, one.why ? say("jobs_not_delivered", { place: one.to, why: one.why }) : say("jobs_delivered", { places: one.to }))),
    run.text && make("div", { class: "out", dir: "auto" }, run.text)));
  return make("ul", { class: "runs", tabindex: "0", "data-keep": `${job.id} runs`, "aria-label": `${say("jobs_history")}: ${job.title}` },
    ...(runs.length ? runs : [make("li", { class: "faint" }, say("jobs_never"))]));
}

// ---- what the buttons do

async function done(job, action) {
  sure = "";
  try {
    await act(job.id, action);
    tell(say(DONE[action], { title: job.title }));
  } catch (error) {
    tell(error.status === 409 ? say("job_idle", { title: job.title }) : error.message);
  }
  await load();
}

function remove(job) { // a second press means it
  if (sure === job.id) return done(job, "delete");
  sure = job.id;
  tell(say("job_ask", { title: job.title }));
  load();
}

async function fold(job) {
  if (opened.has(job.id)) opened.delete(job.id);
  else opened.set(job.id, []);
  await load();
}

async function edit(job) {
  list.querySelector("form")?.remove();
  edited = job.id;
  await load();
  list.querySelector("form .field")?.focus();
}

function inWords(job) { // as everywhere
  box.close();
  write(say("job_edit", { title: job.title }));
  $("text").focus();
}

$("agenda-close").addEventListener("click", () => box.close());
box.addEventListener("click", (event) => { if (event.target === box) box.close(); }); // beside it
box.addEventListener("close", () => { sure = edited = ""; opened.clear(); list.querySelector("form")?.remove(); });
box.addEventListener("focusout", (event) => { if (sure && event.relatedTarget && event.relatedTarget.dataset.keep !== `${sure} delete`) { sure = ""; load(); } });
box.addEventListener("pointerdown", () => (pressed = true));
for (const end of ["pointerup", "pointercancel"]) addEventListener(end, () => setTimeout(() => (pressed = false)));
setInterval(() => { if (box.open && !document.hidden) load(); }, AGAIN);
