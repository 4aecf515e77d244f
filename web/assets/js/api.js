// The HTTP API: plain fetches for state, one event stream for news.

/** get fetches JSON; errors carry the server's own words. Returns {data, id}: id is the event position before the read. */
export const get = (path, params = {}) => request("GET", path, params);

/** post is get for what changes something. */
export const post = (path, params = {}) => request("POST", path, params);

async function request(method, path, params) {
  const query = new URLSearchParams(params).toString();
  let res;
  try {
    res = await fetch("api/v1/" + path + (query ? "?" + query : ""), { method, cache: "no-store" });
  } catch {
    throw new Error("the server does not answer");
  }
  let body = null;
  try {
    body = await res.json();
  } catch {
    throw Object.assign(new Error(`${path}: reply ${res.status} is not JSON`), { status: res.status });
  }
  if (!res.ok) throw Object.assign(new Error(body.error || `${path}: status ${res.status}`), { status: res.status });
  return { data: body, id: res.headers.get("Plumbline-Event-Id") || "" };
}

const RETRY_MS = 5000;

/**
 * Stream keeps one EventSource open. EventSource reconnects by itself after a lost connection, with Last-Event-ID;
 * after a refusal (a status other than 200) it gives up, so that we retry from the last id that we saw.
 */
export class Stream {
  /** on: {snapshot, alert, calibrator, status, reset}(data) and state("live" | "lost"). */
  constructor(on) {
    this.on = on;
    this.source = null;
    this.timer = 0;
  }

  open(params, after) {
    this.close();
    this.params = params;
    this.last = after;
    const query = new URLSearchParams({ ...params, ...(after ? { after } : {}) });
    const source = new EventSource("api/v1/events?" + query);
    this.source = source;
    source.onopen = () => this.on.state("live");
    source.onerror = () => {
      this.on.state("lost");
      if (source.readyState === EventSource.CLOSED) {
        this.timer = setTimeout(() => this.open(this.params, this.last), RETRY_MS);
      }
    };
    for (const type of ["snapshot", "alert", "calibrator", "status", "reset"]) {
      source.addEventListener(type, (e) => {
        if (source !== this.source) return;
        if (e.lastEventId) this.last = e.lastEventId;
        this.on[type](JSON.parse(e.data));
      });
    }
  }

  close() {
    clearTimeout(this.timer);
    if (this.source) this.source.close();
    this.source = null;
  }
}
