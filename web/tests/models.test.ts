import { describe, expect, it } from "vitest";
import type { ModelsResponse } from "@/api/types";
import { adviceOn } from "@/lib/models";

const BODY = {
  installed: [],
  loaded: [],
  in_use: { answers: "ollama:llama3.2:latest" },
  fit: null,
  tests: [{ model: "ollama:llama3.2:latest", advice: "llama3.2: 20 of 24" }],
} as unknown as ModelsResponse;

describe("the model picker", () => {
  it("says what the test of the chosen or answering model found", () => {
    expect(adviceOn(null, BODY)).toBe("llama3.2: 20 of 24");
    expect(adviceOn("llama3.2", BODY)).toBe("llama3.2: 20 of 24");
    expect(adviceOn("qwen2.5:0.5b", BODY)).toBe("Model");
    expect(adviceOn(null, undefined)).toBe("Model");
  });
});
