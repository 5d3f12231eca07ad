import { describe, expect, it } from "vitest";
import { EventStreamParser, type ServerEvent } from "@/lib/sse";

const STREAM = '\ufeff: hello\nevent: meta\ndata: {"a":1}\n\nevent: token\r\ndata: one\r\ndata: two 🎉\r\n\r\n: heartbeat\n\ndata:no space\rid: 7\r\rdata\n\nevent: lost\n\n';
const EVENTS: ServerEvent[] = [
  { event: "meta", data: '{"a":1}' },
  { event: "token", data: "one\ntwo 🎉" },
  { event: "message", data: "no space" },
  { event: "message", data: "" },
];

describe("event stream", () => {
  it("reads a stream in one piece", () => {
    expect(new EventStreamParser().push(STREAM)).toEqual(EVENTS);
  });

  it("reads the same events however the stream is cut", () => {
    for (let size = 1; size < 12; size += 1) {
      const parser = new EventStreamParser();
      const got: ServerEvent[] = [];
      for (let at = 0; at < STREAM.length; at += size) got.push(...parser.push(STREAM.slice(at, at + size)));
      expect(got).toEqual(EVENTS);
    }
  });

  it("keeps an event that has not ended", () => {
    const parser = new EventStreamParser();
    expect(parser.push("data: half")).toEqual([]);
    expect(parser.push("\n\n")).toEqual([{ event: "message", data: "half" }]);
  });
});
