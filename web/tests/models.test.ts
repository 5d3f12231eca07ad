import { describe, expect, it } from "vitest";
import type { ModelsResponse } from "@/api/types";
import { adviceOn, chatModels, installedModels } from "@/lib/models";

const BODY = {
  installed: [],
  loaded: [],
  in_use: { answers: "ollama:llama3.2:latest" },
  fit: null,
  tests: [{ model: "ollama:llama3.2:latest", advice: "llama3.2: 20 of 24" }],
} as unknown as ModelsResponse;

describe("the model picker", () => {
  it("says what the test of the chosen or answering model found", () => {
    expect(adviceOn(null, BODY, "-")).toBe("llama3.2: 20 of 24");
    expect(adviceOn("llama3.2", BODY, "-")).toBe("llama3.2: 20 of 24");
    expect(adviceOn("qwen2.5:0.5b", BODY, "-")).toBe("-");
    expect(adviceOn(null, undefined, "-")).toBe("-");
  });
});

describe("the list of models", () => {
  const several = {
    ...BODY,
    installed: [
      { name: "llama3.2:latest", size_bytes: 1, chats: true },
      { name: "qwen2.5:7b", size_bytes: 2, chats: true },
      { name: "nomic-embed-text:latest", size_bytes: 3, chats: false },
    ],
  } as unknown as ModelsResponse;

  it("offers the chat models that do not answer now, and no embedding model", () => {
    expect(chatModels(several)).toEqual(["llama3.2:latest", "qwen2.5:7b"]);
    expect(installedModels(several).filter((model) => model.offered).map((model) => model.name)).toEqual(["qwen2.5:7b"]);
  });
});
