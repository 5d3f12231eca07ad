/** One server-sent event; `event` is "message" when the server named none. */
export interface ServerEvent {
  event: string;
  data: string;
}

/**
 * Incremental parser of an event stream (WHATWG HTML, section 9.2.6). Comments, which serve as heartbeats, yield nothing.
 */
export class EventStreamParser {
  #rest = "";
  #event = "";
  #data: string[] = [];
  #started = false;

  /** Feed decoded text; returns the events that it completed. */
  push(text: string): ServerEvent[] {
    let buffer = this.#rest + text;
    if (!this.#started && buffer.length > 0) {
      if (buffer.startsWith("\ufeff")) buffer = buffer.slice(1);
      this.#started = true;
    }
    const events: ServerEvent[] = [];
    let from = 0;
    for (;;) {
      const next = nextLine(buffer, from);
      if (next === null) break;
      this.#line(buffer.slice(from, next.end), events);
      from = next.after;
    }
    this.#rest = buffer.slice(from);
    return events;
  }

  #line(line: string, events: ServerEvent[]): void {
    if (line === "") {
      if (this.#data.length > 0) events.push({ event: this.#event || "message", data: this.#data.join("\n") });
      this.#event = "";
      this.#data = [];
      return;
    }
    const colon = line.indexOf(":");
    if (colon === 0) return;
    const field = colon < 0 ? line : line.slice(0, colon);
    const raw = colon < 0 ? "" : line.slice(colon + 1);
    const value = raw.startsWith(" ") ? raw.slice(1) : raw;
    if (field === "event") this.#event = value;
    if (field === "data") this.#data.push(value);
  }
}

/** End of the line that starts at `from`; null while a line, or the LF after a closing CR, may still be on its way. */
function nextLine(buffer: string, from: number): { end: number; after: number } | null {
  for (let i = from; i < buffer.length; i += 1) {
    const char = buffer[i];
    if (char === "\n") return { end: i, after: i + 1 };
    if (char === "\r") {
      if (i + 1 === buffer.length) return null;
      return { end: i, after: buffer[i + 1] === "\n" ? i + 2 : i + 1 };
    }
  }
  return null;
}
