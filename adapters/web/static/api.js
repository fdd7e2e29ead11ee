// The HTTP API (/api/openapi.json): the page uses it and nothing else.

import { newKey, say } from "./dom.js";

const PATIENCE = 30000; // milliseconds for an answer: a network may go away without a word
export const at = { chat: "" };
export const here = () => "/conversations/" + encodeURIComponent(at.chat);

const headers = () => ({ "X-Time-Zone": new Intl.DateTimeFormat().resolvedOptions().timeZone ?? "" });

export async function call(path, { method = "GET", body } = {}) {
  let response;
  try {
    response = await fetch("/api" + path, { method, signal: AbortSignal.timeout(PATIENCE), headers: headers(), body: body === undefined ? undefined : JSON.stringify(body) });
  } catch {
    throw new Error(say("no_gateway"));
  }
  const data = await response.json().catch(() => ({}));
  if (response.ok) return data;
  throw Object.assign(new Error(data.error || say("odd_answer", { status: response.status })), { status: response.status });
}

async function twice(path, options) { // the same key: sending it again is harmless
  try {
    return await call(path, options);
  } catch (error) {
    if (error.status) throw error;
    return call(path, options);
  }
}

const own = new Set();
export const isOwn = (key) => own.has(key); // this tab sent it, and no other one

export function post(what, body) {
  const keyed = { key: newKey(), ...body };
  own.add(keyed.key);
  return twice(here() + what, { method: "POST", body: keyed });
}

export const edit = (message, text) => twice(`${here()}/messages/${encodeURIComponent(message)}`, { method: "PUT", body: { key: newKey(), text } });
export const withdraw = (message) => twice(`${here()}/messages/${encodeURIComponent(message)}`, { method: "DELETE" });
export const act = (job, action, more = {}) => twice(`/jobs/${encodeURIComponent(job)}/${action}`, { method: "POST", body: { key: newKey(), ...more } });

export function upload(blob, progress) { // fetch tells no progress
  const request = new XMLHttpRequest();
  const done = new Promise((resolve, reject) => {
    request.open("POST", "/api/uploads?name=" + encodeURIComponent(blob.name));
    request.responseType = "json";
    request.upload.onprogress = (event) => event.lengthComputable && progress(event.loaded / event.total);
    request.onload = () => request.status === 201 ? resolve(request.response)
      : reject(Object.assign(new Error(request.response?.error || say("odd_answer", { status: request.status })), { status: request.status }));
    request.onerror = () => reject(new Error(say("no_gateway")));
    request.onabort = () => resolve(null);
    request.send(blob);
  });
  return { done, cancel: () => request.abort() };
}
